"""`memeval demo`: stories, models, memory, retrieval and report, on what is bundled; no server needed."""

from __future__ import annotations

import time
from pathlib import Path

import click

from memeval.cli._common import TrialProgress


@click.command(name="demo")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("results/demo"),
    show_default=True,
    help="Folder of the run.",
)
def command(out: Path) -> None:
    """The whole flow on the bundled models; ends with a report.

    Runs two memory tool designs over real stories with a rule-based router and a 135-million-parameter
    language model, measures retrieval with real embeddings, and writes one HTML page. The chat models are a
    smoke test, not a measurement of your model; the retrieval numbers are real.
    """
    from memeval.evaluation.results import read_manifest
    from memeval.evaluation.runner import run
    from memeval.reporting.html import combine
    from memeval.reporting.report import report
    from memeval.retrieval.sweep import load_sweep, run_retrieval
    from memeval.shipped import shipped

    started = time.monotonic()
    _step(1, "stories: two designs, the router on every story, SmolLM2-135M on eight of them")
    progress = TrialProgress()
    try:
        done = run("demo", out, progress=progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; what was done is kept in {out}; `memeval demo` goes on") from None
    finally:
        progress.close()
    _step(2, "retrieval: 60 memories, 60 questions, every embedder with every prefix")
    measured = run_retrieval(load_sweep(shipped("scenarios") / "retrieval" / "default.yaml"), out)
    _step(3, "report: two notebooks, executed and written as offline pages")
    pages = report(out)
    manifests = {"Stories": read_manifest(out), "Retrieval": measured.manifest}
    index = combine(pages, manifests=manifests, title="memeval demo")
    click.echo(f"\n{done}\nDone in {time.monotonic() - started:.0f} s.")
    click.echo("The bundled chat models are a smoke test, not a measurement of your model;")
    click.echo("the retrieval numbers are real.\n")
    click.echo(f"Open this in a browser:\n{index.resolve()}")


def _step(number: int, what: str) -> None:
    click.echo(f"[{number}/3] {what}", err=True)
