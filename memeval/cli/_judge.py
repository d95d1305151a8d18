"""What `memeval rescore RUN --judge MODEL` does: a second opinion that changes no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from memeval.cli._common import emit, plain, short, table

SHOWN = 40
"""Disagreements that are listed; `--json` has all."""


def judge(
    run: Path, model: str, scenarios: Sequence[str], kept: Mapping[str, str], *, host: str | None,
    limit: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Ask a model about the replies of a run and print how far it agrees with the rules."""
    from memeval.evaluation.agreement import agreement
    from memeval.evaluation.judge import judge_run

    def progress(done: int, total: int) -> None:
        if done % 10 == 0 or done == total:
            click.echo(f"\r{done} of {total} replies judged", nl=done == total, err=True)

    quiet = None if as_json else progress
    frame = judge_run(run, model, scenarios, host=host, limit=limit, progress=quiet)
    found = agreement(frame)
    if as_json:
        emit(asdict(found) | frame.attrs)
        return
    click.echo(plain(str(found)))
    for reason, count in frame.attrs["kept_out"].items():
        click.echo(f"Not judged, {count} trials: {kept.get(reason, reason)}.")
    if frame.attrs["smoke"]:
        click.echo("The judge is a bundled or scripted model: a smoke test, no opinion to go by.")
    for row in found.unread[:SHOWN]:
        place = f"{row['trial_key'][:8]} s{row['session']}t{row['turn']}"
        click.echo(plain(f"No verdict on {place}: {row['judge_reason']}"))
    rows = [
        [row["trial_key"][:8], f"s{row['session']}t{row['turn']}", short(row["reply"]), row["rules_reason"],
         row["judge_reason"]]
        for row in found.disagreements[:SHOWN]
    ]  # fmt: skip
    if rows:
        title = f"Where they differ: {len(rows)} of {len(found.disagreements)}"
        table(["trial", "turn", "reply", "the rules", "the judge"], rows, title=title)
