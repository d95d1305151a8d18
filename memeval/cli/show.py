"""`memeval show RUN [TRIAL]`: a run's tables, or one trial as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import emit, json_option, records, short, table
from memeval.errors import InputError, nearest

if TYPE_CHECKING:
    from memeval.evaluation.results import Run

SHOWN = 20
"""Failed trials that are listed; `--json` has all."""

Trial = dict[str, Any]


@click.command(name="show")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("trial", required=False)
@click.option("--designs", is_flag=True, help="Every design side by side: rates and costs.")
@click.option("--exercised", is_flag=True, help="Every tool and hook: how often it ran.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the trial as an offline page.",
)
@json_option
def command(
    run: Path, trial: str | None, designs: bool, exercised: bool, page: Path | None, as_json: bool
) -> None:
    """Show a run's tables, or one trial as a person reads it.

    RUN is the folder of a run. TRIAL is the start of a trial's key, or SCENARIO[:REPEAT[:DESIGN]], such as
    s6:0:local2_dual; the last part may name the model or the calling mode as well.
    """
    if trial is not None and (designs or exercised):
        raise InputError(f"--designs and --exercised are of a whole run; leave {trial!r} out")
    if page is not None and trial is None:
        raise InputError("--html is of one trial; name it, such as s6:0:local2_dual")
    if _is_retrieval(run):
        if designs or exercised:
            raise InputError(f"{run} is a retrieval run, which has no designs")
        _show_retrieval(run, trial, as_json)
        return
    from memeval.evaluation.results import load

    loaded = load(run)
    if designs or exercised:
        from memeval.cli import _designs

        _designs.show(loaded, designs=designs, exercised=exercised, as_json=as_json)
        return
    if trial is None:
        if as_json:
            emit(overview(loaded))
        else:
            _print_overview(loaded)
        return
    fitting = select(records(loaded.trials), trial)
    if len(fitting) > 1:
        keys = (
            "trial_key",
            "scenario",
            "repeat",
            "variant",
            "model",
            "calling",
            "order",
            "outcome",
            "passed",
        )
        if as_json:
            emit([{key: found[key] for key in keys} for found in fitting])
        else:
            _print_trials(fitting)
        raise InputError(
            f"{len(fitting)} trials fit {trial!r}; give more of a key, or scenario:repeat:design"
        )
    from memeval.reporting.one_trial import whole

    data = whole(loaded, fitting[0])
    if page is not None:
        from memeval.reporting.trial_page import trial_page

        trial_page(data, page)
    if as_json:
        emit(data)
    elif page is not None:
        click.echo(f"Page: {page}")
    else:
        from memeval.cli import _trial

        _trial.draw(data)


def select(trials: Sequence[Trial], wanted: str) -> list[Trial]:
    """The trials that a text means; never none. Raises InputError with the nearest name."""
    story, _, rest = wanted.partition(":")
    repeat, _, words = rest.partition(":")
    named = [t for t in trials if t["scenario"] == story] or [
        t for t in trials if t["scenario"].startswith(story) or fnmatchcase(t["scenario"], story)
    ]
    fitting = [
        t for t in named
        if repeat in ("", "*", str(t["repeat"]))
        and all(word in f"{t['variant']} {t['model']} {t['calling']} {t['order']}" for word in words.split())
    ]  # fmt: skip
    keys = [t for t in trials if not rest and t["trial_key"].startswith(wanted) and t not in fitting]
    if not (fitting or keys):
        if named:
            raise InputError(f"no trial of {story!r} fits {wanted!r}; it is SCENARIO:REPEAT:DESIGN")
        known = {t["scenario"] for t in trials}
        raise InputError(f"no trial fits {wanted!r}{nearest(story, known)}")
    return keys + fitting


def overview(run: Run) -> dict[str, Any]:
    """A run as data: its cells with their counts, where trials broke, and every trial."""
    from memeval.cli.run import summary

    trials = records(run.trials)
    return {**summary(run), "failures": _failures(trials), "trials": trials}


def _failures(trials: Sequence[Trial]) -> list[Trial]:
    """Trials that did not pass, the invalid ones with them."""
    keys = ("trial_key", "scenario", "repeat", "variant", "model", "calling", "outcome", "broken_at",
            "failure", "invalid_reason", "phantom_save", "leaked_call")  # fmt: skip
    return [
        {key: t[key] for key in keys} for t in trials if t["passed"] is False or t["outcome"] == "invalid"
    ]


def _print_overview(run: Run) -> None:
    from memeval.cli.run import print_notes, print_rates, summary

    manifest = run.manifest
    ended = f"finished {manifest['finished']}" if manifest.get("finished") else "not finished"
    click.echo(
        f"{manifest['sweep']}: {manifest.get('title') or 'no title'}"
        f" ({ended}, memeval {manifest.get('memeval')})"
    )
    cells = [
        [c["variant"], c["model"], c["calling"], len(c["tools"]), c["tool_order"], c["description_tokens"],
         c["tool_tax"], c["embedder"], c["prefix"], c["fidelity"]]
        for c in records(run.cells)
    ]  # fmt: skip
    columns = ["design", "model", "calling", ">tools", "tool order", ">description tokens", ">tool tax",
               "embedder", "prefix", "fidelity"]  # fmt: skip
    table(columns, cells, title="Cells")
    data = summary(run)
    print_rates(data)
    failures = _failures(records(run.trials))
    if failures:
        _print_broken(failures)
        rows = [
            [
                f["trial_key"][:8],
                f["scenario"],
                f["repeat"],
                f["variant"],
                f["model"],
                f["calling"],
                short(_why(f), 60),
            ]
            for f in failures[:SHOWN]
        ]
        count = f"{SHOWN} of {len(failures)}" if len(failures) > SHOWN else str(len(failures))
        table(
            ["trial", "scenario", ">repeat", "design", "model", "calling", "broken at"], rows,
            title=f"Trials that did not pass: {count}",
        )  # fmt: skip
    print_notes(run, data)


def _print_broken(failures: Sequence[Trial]) -> None:
    """How many trials of each cell broke at which stage."""
    counts: dict[tuple[str, str, str, str], int] = {}
    for f in failures:
        stage = f["outcome"] if f["outcome"] != "ok" else f["broken_at"].partition(" ")[2] or "expectations"
        key = (f["variant"], f["model"], f["calling"], stage)
        counts[key] = counts.get(key, 0) + 1
    rows = [[*key, count] for key, count in sorted(counts.items(), key=lambda item: -item[1])]
    table(["design", "model", "calling", "first broken", ">trials"], rows, title="Where trials broke")


def _why(failure: Trial) -> str:
    return str(failure["invalid_reason"] or failure["failure"] or failure["broken_at"] or "an expectation")


def _print_trials(trials: Sequence[Trial]) -> None:
    from memeval.cli._common import MARKS

    rows = [
        [t["trial_key"][:8], t["scenario"], t["repeat"], t["variant"], t["model"], t["calling"], t["order"],
         MARKS[t["passed"]]]
        for t in trials
    ]  # fmt: skip
    table(["trial", "scenario", ">repeat", "design", "model", "calling", "tool order", "passed"], rows)


def _is_retrieval(run: Path) -> bool:
    return (run / "retrieval.json").is_file() and not (run / "manifest.json").is_file()


def _show_retrieval(run: Path, trial: str | None, as_json: bool) -> None:
    from memeval.cli.retrieval import print_quality, summary
    from memeval.retrieval.results import load_retrieval

    if trial is not None:
        raise InputError(f"{run} is a retrieval run, which has no trials; leave {trial!r} out")
    found = load_retrieval(run)
    if as_json:
        emit(summary(found, run))
    else:
        print_quality(found, run)
