"""`memeval scenarios list` and `validate`: stories as data, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import emit, json_option, short, table
from memeval.errors import InputError

if TYPE_CHECKING:
    from memeval.scenarios.schema import Scenario


@click.group(name="scenarios")
def command() -> None:
    """List and check stories."""


@command.command(name="list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@json_option
def list_(patterns: tuple[str, ...], as_json: bool) -> None:
    """List stories.

    PATTERN is as in a sweep: tag:NAME, family:NAME, an id, a glob over ids, a file or a folder. Without
    one, all stories that come with memeval.
    """
    from memeval.scenarios.loader import load_scenarios

    data = [describe(scenario) for scenario in load_scenarios(patterns or ("*",))]
    if as_json:
        emit(data)
        return
    rows = [
        [s["scenario"], s["family"], s["sessions"], s["turns"], " ".join(s["tags"]), short(s["title"])]
        for s in data
    ]
    table(["scenario", "family", ">sessions", ">turns", "tags", "title"], rows)
    click.echo(f"{len(data)} scenarios of {len({s['family'] for s in data})} families")


@command.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@json_option
def validate(paths: tuple[Path, ...], as_json: bool) -> None:
    """Check stories: what is an error, and what deserves a look.

    PATH is a file or a folder; without one, the stories that come with memeval. Errors end with exit code 2.
    """
    from memeval.scenarios.lint import lint
    from memeval.scenarios.loader import read_scenarios
    from memeval.shipped import shipped

    scenarios: list[Scenario] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for file in dict.fromkeys(file for path in paths or (shipped("scenarios"),) for file in _files(path)):
        try:
            found = read_scenarios(file)
        except InputError as error:
            errors.append(str(error))
            continue
        if not found:
            errors.append(f"{file}:1: no scenario in it")
        for scenario in found:
            place = f"{file}:{scenario.line('scenario')}"
            if (first := places.setdefault(scenario.scenario, place)) != place:
                errors.append(
                    f"{place}: scenario {scenario.scenario!r} stands twice, first at {first};"
                    " give one of them another id"
                )
            else:
                scenarios.append(scenario)
    findings = lint(scenarios)
    if as_json:
        keys = ("scenario", "file", "line", "rule", "message")
        told = [{key: getattr(finding, key) for key in keys} for finding in findings]
        emit({"scenarios": len(scenarios), "errors": errors, "findings": told})
    else:
        for line in [*errors, *map(str, findings)]:
            click.echo(line)
        click.echo(f"{len(scenarios)} scenarios, {len(errors)} errors, {len(findings)} findings")
    if errors:
        raise InputError(
            f"{len(errors)} of the story files or ids are wrong; each is named above with its line"
        )


def describe(scenario: Scenario) -> dict[str, Any]:
    """A story as data, expectations included."""
    return {
        "scenario": scenario.scenario,
        "family": scenario.family,
        "title": scenario.title,
        "tags": scenario.tags,
        "file": str(scenario.source or ""),
        "line": scenario.line("scenario"),
        "sessions": len(scenario.sessions),
        "turns": sum(len(session.turns) for session in scenario.sessions),
        "facts": {name: fact.model_dump(mode="json") for name, fact in scenario.facts.items()},
        "intents": sorted({t.expect.intent for s in scenario.sessions for t in s.turns if t.expect}),
    }


def _files(path: Path) -> Iterator[Path]:
    from memeval.scenarios.loader import NOT_STORIES

    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml"))
        files = [p for p in found if NOT_STORIES.isdisjoint(p.relative_to(path).parts)]
        if not files:
            raise InputError(f"{path}: no story file (.yaml) in it")
        yield from files
    elif path.exists():
        yield path
    else:
        raise InputError(f"{path}: no such file or folder")
