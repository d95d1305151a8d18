"""Reading scenarios: patterns to files to checked stories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from memeval.errors import InputError, nearest
from memeval.scenarios.schema import Scenario
from memeval.shipped import shipped
from memeval.yamlfile import checked, locate, read_documents

NOT_STORIES = frozenset({"retrieval", "sweeps"})
"""Folders of a scenarios folder that hold other things."""


def load_scenarios(
    patterns: Iterable[str | Path] = ("*",), root: Path | None = None, *, base: Path | None = None
) -> list[Scenario]:
    """The scenarios that any pattern names, in the patterns' order, each once.

    A pattern is `tag:NAME`, `family:NAME`, `split:dev`, a scenario's id, a glob over ids, or the path of a
    file or folder (seen from `base`, by default the working folder, then from `root`). `root` is the folder
    that all but paths are looked up in, by default the stories shipped with memeval.

    Raises InputError for a file that is not a scenario, two scenarios under one id, a pattern without match.
    """
    wanted = [patterns] if isinstance(patterns, str | Path) else list(patterns)
    if not wanted:
        raise InputError("no scenarios were asked for; '*' means all")
    chosen: dict[str, Scenario] = {}
    library: list[Scenario] | None = None
    folder = root
    for pattern in wanted:
        text = str(pattern)
        folder = folder or shipped("scenarios")
        if (path := _path(text, base or Path.cwd(), folder)) is not None:
            found = _distinct(scenario for file in _files(path) for scenario in read_scenarios(file))
            if not found:
                raise InputError(f"{path}: no scenario in it")
        else:
            library = library if library is not None else load_folder(folder)
            found = _select(text, library)
        for scenario in found:
            twin = chosen.setdefault(scenario.scenario, scenario)
            _refuse_twin(twin, scenario)
    return list(chosen.values())


def load_folder(folder: Path) -> list[Scenario]:
    """All scenarios of a folder and its subfolders, in the order of their paths."""
    return _distinct(scenario for file in _files(folder) for scenario in read_scenarios(file))


def read_scenarios(path: Path) -> list[Scenario]:
    """The scenarios of one file, one a YAML document."""
    found = []
    for document in read_documents(path):
        scenario = checked(Scenario, document.data, path, document.lines)
        for loc, name in fact_names(scenario):
            if name not in scenario.facts:
                raise InputError(
                    f"{path}:{locate(document.lines, loc)}: {scenario.scenario} has no fact {name!r}"
                    f"{nearest(name, scenario.facts)}"
                )
        scenario._source, scenario._lines = path, document.lines
        found.append(scenario)
    return found


def fact_names(scenario: Scenario) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every mention of a fact in the expectations, with its place in the document."""
    for s, session in enumerate(scenario.sessions):
        for t, turn in enumerate(session.turns):
            expect = turn.expect
            if expect is None:
                continue
            here: tuple[str | int, ...] = ("sessions", s, "turns", t, "expect")
            lists: dict[tuple[str, ...], list[str]] = {
                ("facts",): expect.facts,
                ("answer", "confirms"): expect.answer.confirms,
                ("answer", "states"): expect.answer.states,
                ("answer", "avoids"): expect.answer.avoids,
                ("store", "holds"): expect.store.holds if expect.store else [],
                ("store", "lacks"): expect.store.lacks if expect.store else [],
            }
            for keys, names in lists.items():
                yield from (((*here, *keys, i), name) for i, name in enumerate(names))


def schema_json() -> str:
    """The JSON Schema of a scenario file, as `scenarios/schema.json` holds it for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _path(pattern: str, base: Path, root: Path) -> Path | None:
    """The file or folder a pattern names, or None where it names none and does not look like a path."""
    if pattern.startswith(("tag:", "family:", "split:")):
        return None
    path = Path(pattern).expanduser()
    is_file = path.suffix in (".yaml", ".yml")
    if not is_file and "/" not in pattern and "\\" not in pattern:
        return root / path if pattern not in ("", ".", "..") and (root / path).is_dir() else None
    for place in (base / path, root / path):
        if place.exists():
            return place
    raise InputError(f"{pattern}: no such file or folder, neither in {base} nor in {root}")


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = (p for p in path.rglob("*") if p.suffix in (".yaml", ".yml") and p.is_file())
    return sorted(p for p in found if NOT_STORIES.isdisjoint(p.relative_to(path).parts))


def _select(pattern: str, library: Sequence[Scenario]) -> list[Scenario]:
    kind, _, name = pattern.partition(":") if ":" in pattern else ("id", "", pattern)
    names: dict[str, Callable[[Scenario], Sequence[str]]] = {
        "tag": lambda s: s.tags,
        "split": lambda s: [s.split],
        "family": lambda s: [s.family],
        "id": lambda s: [s.scenario],
    }
    if kind not in names:
        raise InputError(f"scenarios {pattern!r}: {kind!r} is not a way to choose{nearest(kind, names)}")
    found = [s for s in library if any(fnmatchcase(n, name) for n in names[kind](s))]
    if not found:
        known = {n for s in library for n in names[kind](s)}
        raise InputError(f"no scenario matches {pattern!r}{nearest(name, known)}")
    return found


def _distinct(scenarios: Iterable[Scenario]) -> list[Scenario]:
    found: dict[str, Scenario] = {}
    for scenario in scenarios:
        _refuse_twin(found.setdefault(scenario.scenario, scenario), scenario)
    return list(found.values())


def _refuse_twin(first: Scenario, second: Scenario) -> None:
    if first is second or (_place(first) == _place(second)):
        return
    raise InputError(
        f"{_place(second)}: scenario {second.scenario!r} stands twice, first at {_place(first)}; "
        "give one of them another id"
    )


def _place(scenario: Scenario) -> str:
    source = scenario.source
    return f"{source.resolve() if source else '?'}:{scenario.line('scenario')}"
