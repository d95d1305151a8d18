"""A sweep: a small file that multiplies scenarios, designs, models and settings into trials."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from memeval.designs.registry import DesignSpec, open_design
from memeval.designs.surface import Names, Shape, Surface, Words
from memeval.embedding.base import PrefixMode
from memeval.errors import InputError, nearest
from memeval.evaluation.perturb import REPEATS as PERTURBED_REPEATS
from memeval.evaluation.perturb import Accident, Drawn, Perturbation, perturbation
from memeval.evaluation.trial import LOOP_VERSION, Trial
from memeval.models.base import CallingMode, Options
from memeval.scenarios.loader import load_scenarios
from memeval.scenarios.schema import Name, Scenario
from memeval.shipped import shipped
from memeval.yamlfile import checked, read_yaml

ToolOrder = Literal["balanced", "as_written", "read_first", "write_first", "shuffled"]
CellOrder = ToolOrder | Literal["perturbed"]
"""`perturbed`: drawn for each repeat with other accidents."""
REPEATS = 6
"""Repeats where a sweep names no number: even, so that both tool orders come equally often."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class ModelEntry(_Strict):
    """A model; with `calling`, its modes where they differ from the sweep's."""

    name: Annotated[str, Field(min_length=1)]
    calling: list[CallingMode] | None = None


class EmbedderEntry(_Strict):
    """An embedder with its prefix mode and dimensions."""

    name: Annotated[str, Field(min_length=1)]
    prefix: PrefixMode = "card"
    dims: Annotated[int, Field(ge=1)] | None = None

    @property
    def label(self) -> str:
        """The entry as one name, by which it is opened once."""
        prefix = "" if self.prefix == "card" else f" prefix={self.prefix}"
        return self.name + prefix + (f" dims={self.dims}" if self.dims else "")


class SurfaceEntry(_Strict):
    """How tools look: each `as_written` unless said otherwise."""

    shape: Shape = "as_written"
    """`merged`: all tools as one with an `action`; `split`: dual-mode tools as single-purpose ones."""
    names: Names = "as_written"
    """`neutral`: names that say nothing."""
    words: Words = "as_written"
    """Descriptions: `terse` (the first sentence), `when_to_use` (by intent), `length_matched`."""

    def surface(self) -> Surface:
        """The entry as a surface."""
        return Surface(self.shape, self.names, self.words)


def _entry(value: Any) -> Any:
    """A name alone stands for an entry with nothing else in it."""
    return {"name": value} if isinstance(value, str) else value


class Axes(_Strict):
    """What is multiplied. In a part, what is left out is the sweep's."""

    scenarios: list[str] | None = None
    """`tag:NAME`, `family:NAME`, ids, globs, files."""
    designs: list[str | dict[str, dict[str, Any] | None]] | None = None
    """`name`, `{name: {setting: value}}` or `file.py:Class`."""
    surfaces: list[SurfaceEntry] | None = None
    """How the tools of every design look; as written where this is left out."""
    models: list[Annotated[ModelEntry, BeforeValidator(_entry)]] | None = None
    calling: list[CallingMode] | None = None
    embedders: list[Annotated[EmbedderEntry, BeforeValidator(_entry)]] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)] | None = None
    """6 unless said otherwise; an even number has both tool orders equally often."""
    tool_order: ToolOrder | None = None
    """`balanced` unless said otherwise: even repeats list first what reads, odd ones what writes. With
    `perturb` it is drawn, or `as_written`."""
    perturb: list[Accident] | None = None
    """Accidents of which each repeat draws a combination of levels, balanced over the repeats (8 unless said
    otherwise) and the same for all designs, models and modes: `order` of the tools (what reads or what writes
    first), their `names` (as written or neutral), the `request` (as written or paraphrased, where a story has
    paraphrases), `distractors` (tools of other purposes beside them, or none)."""


class Sweep(Axes):
    """A sweep file. Every key but `sweep` and `parts` may stand in a part as well."""

    sweep: Name
    """Its name; results go to `results/<name>`."""
    title: str = ""
    store: Literal["chroma", "inmemory"] = "chroma"
    seed: int = 0
    read_only: bool = False
    """Refuse every write of tools and hooks, to see what memory that is only read is worth."""
    options: dict[str, Any] = {}
    """Model options; what is left out has memeval's pinned defaults."""
    allow_unreadable: bool = False
    """Run cells whose model cannot read the tools; they stay marked."""
    parts: list[Axes] = []
    """Sweeps of their own axes, run as one: the union of their products."""

    def model_options(self) -> Options:
        """The options with the sweep's values in place."""
        return Options(**checked_options(self.options, f"sweep {self.sweep!r}"))


def checked_options(options: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Model options that a person wrote. Raises InputError for an unknown one or a value of another type."""
    defaults = Options().as_dict()
    for key, value in options.items():
        if key == "seed":
            raise InputError(f"{place}: the seed of a trial follows from the sweep's `seed`; set that")
        if key not in defaults:
            raise InputError(f"{place}: there is no option {key!r}{nearest(key, defaults)}")
        default = defaults[key]
        fits = {bool: bool | str, int: int, float: int | float}[type(default)]
        if not isinstance(value, fits) or (isinstance(value, bool) and not isinstance(default, bool)):
            raise InputError(f"{place}: option {key} is {value!r}; it must be like {default!r}")
    return dict(options)


@dataclass(frozen=True, slots=True)
class CellSpec:
    """What trials compared within a run may differ in, before anything was opened."""

    design: DesignSpec
    model: str
    calling: CallingMode
    embedder: EmbedderEntry
    order: CellOrder = "balanced"
    perturb: Perturbation | None = None

    @property
    def accidents(self) -> tuple[Accident, ...]:
        """What is drawn for each repeat."""
        return self.perturb.accidents if self.perturb else ()

    @property
    def marks(self) -> list[Any]:
        """What of the accidents enters the keys of cells: nothing where there are none."""
        return [["perturb", *self.accidents]] if self.accidents else []


@dataclass(frozen=True, slots=True)
class Planned:
    """A cell with the scenarios it is to be run on, and the repeats of each."""

    spec: CellSpec
    runs: tuple[tuple[Scenario, int], ...]

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What it is run on."""
        return tuple(scenario for scenario, _ in self.runs)

    @property
    def repeats(self) -> int:
        """The repeats of the scenario that has most."""
        return max(repeats for _, repeats in self.runs)

    def joined(self, other: Planned) -> Planned:
        """With what an equal cell is run on; a scenario of both has the larger number of repeats."""
        runs = {scenario.scenario: (scenario, repeats) for scenario, repeats in self.runs}
        for scenario, repeats in other.runs:
            _, before = runs.get(scenario.scenario, (scenario, 0))
            runs[scenario.scenario] = scenario, max(repeats, before)
        return replace(self, runs=tuple(runs.values()))


def read_sweep(sweep: str | Path | Mapping[str, Any]) -> tuple[Sweep, Path]:
    """A sweep from a file, the name of a shipped one, or plain data; and the folder its paths start from."""
    if isinstance(sweep, Mapping):
        return _complete(checked(Sweep, dict(sweep), Path("<sweep>"), {(): 1}), "<sweep>"), Path.cwd()
    path = find_sweep(sweep)
    data, lines = read_yaml(path)
    return _complete(checked(Sweep, data, path, lines), str(path)), path.resolve().parent


def find_sweep(name: str | Path) -> Path:
    """The file of a sweep: a path, or the name of one that is shipped (`demo`)."""
    path = Path(name)
    if path.is_file():
        return path
    folder = shipped("scenarios") / "sweeps"
    if (named := folder / f"{name}.yaml").is_file():
        return named
    known = [file.stem for file in folder.glob("*.yaml")]
    raise InputError(f"there is no sweep file {str(name)!r}{nearest(str(name), known)}")


def _complete(sweep: Sweep, place: str) -> Sweep:
    for axes in sweep.parts or [sweep]:
        for key in ("scenarios", "designs", "models"):
            if not (getattr(axes, key) or getattr(sweep, key)):
                raise InputError(f"{place}: `{key}` is missing; a sweep needs scenarios, designs and models")
        _check_perturbed(sweep, axes, place)
    sweep.model_options()
    return sweep


def _check_perturbed(sweep: Sweep, axes: Axes, place: str) -> None:
    """Refuse what would change an accident twice, or an unnamed one along with it."""
    accidents, order = _perturb(sweep, axes), axes.tool_order or sweep.tool_order
    if "order" in accidents and order:
        raise InputError(f"{place}: `perturb` draws the order, so `tool_order` cannot set it as well")
    if accidents and order == "balanced":
        raise InputError(
            f"{place}: `tool_order: balanced` changes the order with the repeats, as `perturb` changes "
            f"{', '.join(accidents)}; list `order` under `perturb`, or give another tool_order"
        )
    surfaces = axes.surfaces or sweep.surfaces or []
    if "names" in accidents and any(surface.names != "as_written" for surface in surfaces):
        raise InputError(f"{place}: `perturb` draws the names, so a surface cannot change them as well")


def _perturb(sweep: Sweep, axes: Axes) -> list[Accident]:
    own = axes.perturb if axes.perturb is not None else sweep.perturb
    return own or []


def plan(sweep: Sweep, base: Path, default_embedder: str) -> list[Planned]:
    """The cells of a sweep, equal ones once; InputError for anything named that is not there."""
    planned: dict[str, Planned] = {}
    told: dict[str, Scenario] = {}
    for part in sweep.parts or [Axes()]:
        chosen = load_scenarios(part.scenarios or sweep.scenarios or [], base=base)
        for story in chosen:
            _refuse_another(sweep, told.setdefault(story.scenario, story), story)
            for session in story.sessions:
                checked_options(session.options, f"scenario {story.scenario!r}")
        perturbed = bool(_perturb(sweep, part))
        repeats = part.repeats or sweep.repeats or (PERTURBED_REPEATS if perturbed else REPEATS)
        for spec in _cells(sweep, part, base, default_embedder):
            key = digest(spec.design.fingerprint(), spec.design.variant, spec.model, spec.calling,
                         spec.embedder.label, spec.order, *spec.marks)  # fmt: skip
            found = Planned(spec, tuple((story, repeats) for story in chosen))
            planned[key] = planned[key].joined(found) if key in planned else found
    return list(planned.values())


def _refuse_another(sweep: Sweep, first: Scenario, story: Scenario) -> None:
    """A run knows a scenario by its id, so its parts must mean the same one by it."""
    if story is not first and story.model_dump() != first.model_dump():
        raise InputError(
            f"sweep {sweep.sweep!r}: its parts mean two scenarios by {story.scenario!r}, of {first.source} "
            f"and of {story.source}; give one of them another id"
        )


def _cells(sweep: Sweep, part: Axes, base: Path, default_embedder: str) -> Iterator[CellSpec]:
    """The product of a part's axes; what it leaves out is the sweep's."""
    embedders = part.embedders or sweep.embedders or [EmbedderEntry(name=default_embedder)]
    surfaces = part.surfaces or sweep.surfaces or [SurfaceEntry()]
    accidents = _perturb(sweep, part)
    order: CellOrder = part.tool_order or sweep.tool_order or ("as_written" if accidents else "balanced")
    order = "perturbed" if "order" in accidents else order
    written = [open_design(design, base) for design in part.designs or sweep.designs or []]
    behind = [design.behind(surface.surface()) for design in written for surface in surfaces]
    designs = [(design, perturbation(design, accidents)) for design in behind]
    for entry in part.models or sweep.models or []:
        for design, perturb in designs:
            for mode in entry.calling or part.calling or sweep.calling or ["native"]:
                for embedder in embedders:
                    wanted = design().embedder(embedder.name)
                    own = embedder if wanted == embedder.name else EmbedderEntry(name=wanted)
                    yield CellSpec(design, entry.name, mode, own, order, perturb)


def digest(*parts: Any) -> str:
    """A short hash of plain data, the same on every machine."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def trial_seed(sweep_seed: int, scenario: str, repeat: int) -> int:
    """A trial's seed: equal across designs, models and modes, so that pairs share it."""
    return int(hashlib.sha256(f"{sweep_seed}/{scenario}/{repeat}".encode()).hexdigest()[:8], 16) % 2**31


def order_of(policy: CellOrder, repeat: int) -> str:
    """The order of a repeat. Balanced: even repeats list first what reads, odd ones what writes."""
    if policy == "balanced":
        return "write_first" if repeat % 2 else "read_first"
    return policy


def make_trial(
    sweep: Sweep, spec: CellSpec, cell: str, scenario: Scenario, repeat: int, options: Options
) -> Trial:
    """One trial with its key: the hash of everything its result depends on, expectations not among them.

    Of what is perturbed, the wording enters by what is shown of the story, the order by its name, names and
    distractors by the tools.
    """
    order, seed = order_of(spec.order, repeat), trial_seed(sweep.seed, scenario.scenario, repeat)
    drawn = Drawn(scenario, spec.design, order)
    if spec.perturb:
        drawn = spec.perturb.draw(scenario, sweep.seed, repeat, order)
    key = digest(cell, drawn.scenario.shown(), drawn.order, options.as_dict(), sweep.store, LOOP_VERSION,
                 repeat, seed, *(["read_only"] if sweep.read_only else []), *drawn.shown)  # fmt: skip
    return Trial(
        key=key, cell=cell, scenario=drawn.scenario, design=drawn.design, calling=spec.calling,
        options=options, order=drawn.order, names=drawn.names, request=drawn.request,
        distractors=drawn.distractors, repeat=repeat, seed=seed, read_only=sweep.read_only,
    )  # fmt: skip
