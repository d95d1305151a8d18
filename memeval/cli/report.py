"""`memeval report RUN`: execute the notebooks that fit a run, and print where their pages are."""

from __future__ import annotations

from pathlib import Path

import click

from memeval.cli._common import pairs


@click.command(name="report")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--notebook", metavar="NAME", help="Only this one; a name, or the file of one of your own.")
@click.option("--set", "given", multiple=True, metavar="K=V", help="A parameter of the notebook; repeatable.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the pages.  [default: RUN/report]",
)
def command(run: Path, notebook: str | None, given: tuple[str, ...], out: Path | None) -> None:
    """Make offline HTML reports of a run.

    RUN is the folder of a run. Each notebook that fits it is executed and kept, with one HTML page beside it
    that needs no network. The paths of the pages are printed, one a line.
    """
    parameters = pairs(given)
    from memeval.reporting.report import report

    for page in report(run, notebook, out, parameters):
        click.echo(page)
