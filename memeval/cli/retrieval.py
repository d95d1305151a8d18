"""`memeval retrieval SWEEP`: retrieval quality by embedder and prefix mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import emit, host_option, json_option, records, server, table

if TYPE_CHECKING:
    from memeval.retrieval.results import RetrievalFrames

_ABOUT = ("embedder", "prefix", "registered", "identical_to", "unsupported", "n")
METRICS = ("recall@5", "ndcg@10")


@click.command(name="retrieval")
@click.argument("sweep")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of the results.")
@host_option
@json_option
def command(sweep: str, out: Path | None, host: str | None, as_json: bool) -> None:
    """Measure retrieval quality by embedder and prefix.

    SWEEP is a file, or the name of one that comes with memeval. Results go to --out, by default
    results/<name>. Vectors are kept in a cache: the same sweep run again embeds nothing.
    """
    from memeval.evaluation.sweep import find_sweep
    from memeval.retrieval.sweep import run_retrieval

    progress = _Progress()
    try:
        run = run_retrieval(find_sweep(sweep), out, progress, host=server(host))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped; what was embedded is kept in the cache, so the same command will be faster"
        ) from None
    finally:
        progress.close()
    found = run.load()
    if as_json:
        emit(summary(found, run.folder))
    else:
        print_quality(found, run.folder)


def summary(found: RetrievalFrames, folder: Path) -> dict[str, Any]:
    """A retrieval run as data: a row for each embedder and prefix mode, with intervals."""
    from memeval.analysis.retrieval_tables import metrics, quality

    measured = [name for name in METRICS if name in metrics(found.queries)] or metrics(found.queries)[:2]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for name in measured:
        for row in records(quality(found.queries, found.cells, value=name)):
            kept = rows.setdefault((row["embedder"], row["prefix"]), {k: row.get(k) for k in _ABOUT})
            kept[name] = {key: row[key] for key in ("mean", "lo", "hi")}
    return {
        "run": str(folder),
        "dataset": found.manifest["dataset"],
        "encoded": found.manifest.get("encoded"),
        "metrics": measured,
        "cells": list(rows.values()),
        "next": f"memeval report {folder}",
    }


def print_quality(found: RetrievalFrames, folder: Path) -> None:
    """The same for a person."""
    data = summary(found, folder)
    rows = [
        [
            cell["embedder"],
            cell["prefix"],
            *_numbers(cell, data["metrics"]),
            int(cell["n"] or 0) or "",
            _note(cell),
        ]
        for cell in data["cells"]
    ]
    dataset = data["dataset"]
    title = f"{dataset['name']}: {dataset['documents']} memories, {dataset['queries']} questions"
    table(
        ["embedder", "prefix", *(f">{name}" for name in data["metrics"]), ">questions", ""], rows, title=title
    )
    click.echo("Means over the answerable questions, with 95 % bootstrap intervals.")
    click.echo(f"{data['encoded']} texts were embedded anew; the rest came from the cache.")
    click.echo(f"\nResults: {folder}\nNext:    {data['next']}")


def _numbers(cell: dict[str, Any], names: list[str]) -> list[str]:
    told = [cell[name] for name in names]
    return [f"{n['mean']:.3f} ({n['lo']:.2f}–{n['hi']:.2f})" if n["mean"] is not None else "–" for n in told]


def _note(cell: dict[str, Any]) -> str:
    if cell["unsupported"]:
        return str(cell["unsupported"])
    if cell["identical_to"]:
        return f"identical by construction to {cell['identical_to']}"
    return "" if cell["registered"] else "unregistered: no prefixes known for it"


class _Progress:
    """Shows on stderr which cell is being measured: a bar on a terminal, elsewhere a line each."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, done: int, total: int, cell: str) -> None:
        if not sys.stderr.isatty():
            if cell:
                click.echo(f"{done + 1} of {total}: {cell}", err=True)
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit="cell", file=sys.stderr)
        self._bar.set_postfix_str(cell, refresh=False)
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
