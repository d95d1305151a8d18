"""`memeval rescore RUN`: judge again what a run kept, without a model, and say what moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import MARKS, emit, host_option, json_option, server, table

if TYPE_CHECKING:
    from memeval.evaluation.rescore import Rescored

SHOWN = 40
"""Trials that moved, as many as are listed; `--json` has all."""
KEPT = {
    "no_evidence": "no evidence was kept",
    "story_changed": "a model would be shown another story now",
    "story_missing": "their story was not found; name its file or folder with --scenarios",
    "newer_scorer": "a newer memeval judged them",
}


@click.command(name="rescore")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--scenarios", multiple=True, metavar="PATTERN",
    help="Stories to judge by: files, folders, ids, tag:NAME.  [default: the sweep's files, shipped stories]",
)  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Write a verdict for every trial, changed or not.")
@click.option("--dry-run", is_flag=True, help="Say what would move; write nothing.")
@click.option("--judge", metavar="MODEL", help="Ask a model instead: an opinion that changes no verdict.")
@click.option("--limit", type=click.IntRange(1), help="Replies that the judge reads, at most.")
@host_option
@json_option
def command(
    run: Path, scenarios: tuple[str, ...], everything: bool, dry_run: bool, judge: str | None,
    limit: int | None, host: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Judge again what a run kept, without a model, and say what moved.

    RUN is the folder of a run. Today's expectations and rules are put to the evidence kept with each trial;
    the verdicts are added to the run, what was there stays, and the newest ones count. With --judge, a model
    reads the replies, its opinions are kept in RUN/judged.jsonl, and its agreement with the rules is printed.
    """
    if judge:
        from memeval.cli import _judge

        _judge.judge(run, judge, scenarios, KEPT, host=server(host), limit=limit, as_json=as_json)
        return
    from memeval.evaluation.rescore import rescore

    found = rescore(run, scenarios, everything=everything, dry_run=dry_run)
    named = _named(found)
    if as_json:
        emit(asdict(found) | {"moved": named})
    else:
        _print(found, named)


def _named(found: Rescored) -> list[dict[str, Any]]:
    """The trials that moved, with the names of their cells."""
    from memeval.evaluation.results import read_manifest

    cells = {cell["cell"]: cell for cell in read_manifest(found.run).get("cells", [])}
    names = ("variant", "model", "calling")
    return [trial | {name: cells[trial["cell"]].get(name, "") for name in names} for trial in found.moved]


def _print(found: Rescored, moved: list[dict[str, Any]]) -> None:
    would = "would get a new verdict" if found.dry_run else "got a new verdict"
    done = f"{found.rescored} of {_trials(found.trials)} {would} by scorer {found.scorer}"
    click.echo(f"{done}; {len(found.moved)} moved.")
    if found.relabelled:
        click.echo(f"{_trials(found.relabelled)} of another family, tag, intent, decoy mark or strength now.")
    if same := found.trials - found.rescored - sum(found.kept.values()):
        click.echo(f"{_trials(same)}: nothing differs.")
    for reason, count in found.kept.items():
        keep = "keeps its verdict" if count == 1 else "keep their verdicts"
        click.echo(f"{_trials(count)} {keep}: {KEPT[reason]}.")
    if found.moves:
        click.echo()
        rows = [
            [move["column"], MARKS[move["before"]], MARKS[move["after"]], move["trials"], move["turns"]]
            for move in found.moves
        ]
        table(["verdict", "was", "is", ">trials", ">turns"], rows, title="What moved")
    if moved:
        click.echo()
        listed = f"{SHOWN} of {len(moved)}" if len(moved) > SHOWN else str(len(moved))
        rows = [
            [t["trial_key"][:8], t["scenario"], t["repeat"], t["variant"], t["model"], t["calling"], _what(t)]
            for t in moved[:SHOWN]
        ]
        table(
            ["trial", "scenario", ">repeat", "design", "model", "calling", "was and is"], rows,
            title=f"Trials that moved: {listed}",
        )  # fmt: skip
    if found.dry_run:
        click.echo("\nNothing was written.")


def _what(trial: Mapping[str, Any]) -> str:
    """`passed ✗✓; s1t2 answered ✗✓`: the trial's own verdict first, then those of its turns."""
    parts = [_changes(trial, ("passed",))] if "passed" in trial["before"] else []
    parts += [f"s{turn['session']}t{turn['turn']} {_changes(turn)}" for turn in trial["turns"]]
    return "; ".join(parts) or _changes(trial)


def _changes(moved: Mapping[str, Any], names: tuple[str, ...] = ()) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {MARKS[moved['before'][name]]}→{MARKS[moved['after'][name]]}"
        for name in names or moved["before"]
    )


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
