"""`memeval scenarios import`: a public benchmark as stories and as retrieval sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memeval.cli._common import emit, json_option, table

if TYPE_CHECKING:
    from memeval.scenarios.importers import Imported

NAMES = ("bfcl", "letta", "locomo", "longmemeval")


@click.command(name="import")
@click.argument("benchmark", type=click.Choice(NAMES))
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder.  [default: imported/BENCHMARK]"
)
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="At most N questions, spread over the families."
)
@click.option("--given", is_flag=True, help="bfcl: sessions stand in memory instead of being told live.")
@click.option(
    "--sessions",
    type=click.IntRange(min=0),
    metavar="N",
    help="Past sessions of a story, those with the evidence among them; 0: all.  [default: 10; bfcl live: 1]",
)
@json_option
def import_(
    benchmark: str,
    path: Path,
    out: Path | None,
    limit: int | None,
    given: bool,
    sessions: int | None,
    as_json: bool,
) -> None:
    """Turn a public benchmark into stories and retrieval sets.

    PATH is the data as its authors publish it: for bfcl the folder bfcl_eval/data, for letta
    core_memory_update.jsonl, for locomo locomo10.json, for longmemeval longmemeval_s.json or
    longmemeval_oracle.json. Nothing is fetched.
    """
    from memeval.scenarios.importers import Options, import_benchmark

    if given and benchmark != "bfcl":
        raise click.UsageError(f"--given is for bfcl; in {benchmark} the past stands in memory anyway")
    options = Options(limit, given, sessions)
    print_import(import_benchmark(benchmark, path, out, options), as_json)


def print_import(found: Imported, as_json: bool) -> None:
    """What was imported, as a table or as JSON."""
    following = [f"memeval scenarios validate {found.folder}"]
    following += [f"memeval retrieval {sweep}" for sweep in found.sweeps[:1]]
    if as_json:
        counts = [{"group": group, "what": what, "count": count} for group, what, count in found.counts]
        about = {"import": found.benchmark.name, "folder": str(found.folder), "counts": counts}
        emit({**about, "sweeps": [str(sweep) for sweep in found.sweeps], "next": following})
        return
    rows = [
        [group if i == 0 or found.counts[i - 1][0] != group else "", what, f"{count:,}"]
        for i, (group, what, count) in enumerate(found.counts)
    ]
    table(["", "what", ">count"], rows, title=f"{found.benchmark.title}, licence {found.benchmark.licence}")
    click.echo(f"\nStories: {found.folder / 'stories'}")
    for sweep in found.sweeps:
        click.echo(f"Retrieval: {sweep.with_suffix('')}")
    click.echo("Next:    " + "\n         ".join(following))
