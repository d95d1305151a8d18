"""What a pytest run was asked for, read from its options and checked before anything is collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest

from memeval.cli._common import typed
from memeval.designs.registry import design_names, open_design
from memeval.embedding import embedder_names, open_embedder
from memeval.errors import InfrastructureError, InputError, MemevalError, nearest
from memeval.memory import KINDS
from memeval.models.base import CallingMode
from memeval.models.registry import open_model
from memeval.pytest_plugin import given
from memeval.settings import load_settings

REPEATS = 3


class Place(NamedTuple):
    """A cell by its names: what stands in the brackets of a test's name."""

    design: str
    model: str
    calling: str

    def __str__(self) -> str:
        return "-".join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The cells, the embedder, how often each story is run and what share of its repeats must pass."""

    designs: Mapping[str, str | dict[str, Any]]
    """By the name that tables show, `local2_dual write_path=tool`: the design as a sweep writes it."""
    models: tuple[str, ...]
    calling: tuple[str, ...]
    embedder: str
    repeats: int
    pass_rate: float
    store: str
    host: str | None

    def places(self) -> list[Place]:
        """All cells in running order: a model stays loaded, and a design's prompt cached."""
        found = product(self.models, self.designs, self.calling)
        return [Place(design, model, calling) for model, design, calling in found]

    def sweep(self, model: str, files: Sequence[Path]) -> dict[str, Any]:
        """The sweep of one model over some story files."""
        return {
            "sweep": "pytest", "scenarios": [str(file) for file in files],
            "designs": list(self.designs.values()), "models": [model], "calling": list(self.calling),
            "embedders": [self.embedder], "repeats": self.repeats, "store": self.store,
        }  # fmt: skip


def read(config: pytest.Config) -> Wanted:
    """The options, checked. Raises pytest.UsageError with one sentence and the nearest name there is."""
    try:
        return _read(config)
    except MemevalError as error:
        raise pytest.UsageError(str(error)) from None


def _read(config: pytest.Config) -> Wanted:
    settings = load_settings()
    wanted = Wanted(
        designs=_designs(config),
        models=tuple(dict.fromkeys(given(config, "model"))),
        calling=tuple(_known("calling", given(config, "calling") or ["native"], get_args(CallingMode))),
        embedder=_one(config, "embedder", settings.embedder),
        repeats=_repeats(_one(config, "repeats", str(REPEATS))),
        pass_rate=_rate(_one(config, "pass-rate", "1")),
        store=_known("store", [_one(config, "store", KINDS[0])], KINDS)[0],
        host=settings.ollama_host or None,
    )
    if not (wanted.embedder in embedder_names() or wanted.embedder.startswith("ollama:")):
        open_embedder(wanted.embedder, cache=None)  # says which name is meant
    if not hasattr(config, "workerinput"):  # xdist's workers need not ask again
        for name in wanted.models:
            _check_model(name, wanted.host)
    return wanted


def _designs(config: pytest.Config) -> dict[str, str | dict[str, Any]]:
    """The designs by their variants. Each is made once, so that a bug in its making is told at once."""
    texts = given(config, "design")
    if not texts:
        raise InputError(f"--memeval-design is missing; there are: {', '.join(design_names())}")
    typed = bool(config.getoption("memeval_design"))
    base = config.invocation_params.dir if typed else config.rootpath
    found: dict[str, str | dict[str, Any]] = {}
    for entry in (_entry(text, base) for text in dict.fromkeys(texts)):
        spec = open_design(entry, base)
        spec.fingerprint()
        if spec.variant in found:
            raise InputError(f"--memeval-design names {spec.variant!r} twice")
        found[spec.variant] = entry
    return found


def _entry(text: str, base: Path) -> str | dict[str, Any]:
    """A design as a sweep writes it, from `name`, `name setting=value ...` or `file.py:Class`."""
    words, settings = text.split(" "), {}
    while "=" in words[-1]:
        key, _, value = words.pop().partition("=")
        settings[key] = typed(value)
    name = " ".join(words)
    if ".py:" in name:
        name = str(base / name)
    return {name: settings} if settings else name


def _check_model(name: str, host: str | None) -> None:
    """Look a model up. A server that answers knows its models; without one, the stories are skipped."""
    model = open_model(name, host=host)
    try:
        if name.startswith("ollama:"):
            _ = model.digest
    except InfrastructureError:
        pass
    finally:
        model.close()


def _one(config: pytest.Config, name: str, default: str) -> str:
    return (given(config, name) or [default])[0]


def _known(name: str, values: Iterable[str], known: Sequence[str]) -> list[str]:
    for value in values:
        if value not in known:
            raise InputError(f"--memeval-{name} {value!r} is not known{nearest(value, known)}")
    return list(dict.fromkeys(values))


def _repeats(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 1000):
        raise InputError(f"--memeval-repeats is {text!r}; it must be a whole number from 1 to 1000")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise InputError(f"--memeval-pass-rate is {text!r}; it must be a number from 0 to 1, such as 0.8")
    return rate
