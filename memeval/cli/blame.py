"""`memeval blame RUN`: which stage broke the stories that failed, found by telling them again."""

from __future__ import annotations

from pathlib import Path

import click

from memeval.cli._common import emit, host_option, json_option, records, server, table


@click.command(name="blame")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--most", type=click.IntRange(1), default=60, show_default=True, help="Failures to replay.")
@click.option("--seeds", type=click.IntRange(2), default=5, show_default=True, help="Replays a substitution.")
@click.option("--every", is_flag=True, help="Try every substitution, also after one that helps.")
@click.option("--tables", is_flag=True, help="Only show what was blamed before; ask no model.")
@host_option
@json_option
def command(
    run: Path, most: int, seeds: int, every: bool, tables: bool, host: str | None, as_json: bool
) -> None:
    """Blame the failures of a run on the first stage that broke.

    Each failed trial of a sample is told again up to the turn that went wrong, with one thing put right at a
    time, beside replays with nothing changed. Needs the run's transcripts and the model. Results are kept in
    RUN/blame.jsonl as they come: stop at any time, the same command goes on.
    """
    from memeval.analysis.blame import STAGES, blame, read_blame, waterfall

    def progress(done: int, total: int) -> None:
        click.echo(f"\r{done} of {total} failures replayed", nl=done == total, err=True)

    quiet = as_json or tables
    found = (
        read_blame(run)
        if tables
        else blame(
            run, most=most, seeds=seeds, every=every, host=server(host), progress=None if quiet else progress
        )
    )
    stages = waterfall(found)
    others = found[~found["in_sample"]].groupby("blamed").size()
    if as_json:
        emit({"stages": records(stages), "not_replayed": others.to_dict(), "trials": records(found)})
        return
    if found.empty:
        click.echo("Nothing was blamed: no trial of this run failed, or `memeval blame` has not been run.")
        return
    keys = ["variant", "model", "calling", "sampled"]
    wide = stages.pivot_table(index=keys, columns="stage", values="failures", sort=False).astype(int)
    seen = [stage for stage in STAGES if stage in wide and wide[stage].any()]
    table(
        ["design", "model", "calling", ">replayed", *(f">{stage}" for stage in seen)],
        wide.reset_index()[[*keys, *seen]].to_numpy().tolist(),
    )
    for label, count in others.items():
        click.echo(f"{label}: {count} trials, not replayed")
