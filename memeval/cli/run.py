"""`memeval run SWEEP`: run a sweep's trials, or go on with them where they were stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import (
    TrialProgress,
    duration,
    emit,
    host_option,
    json_option,
    records,
    server,
    short,
    table,
)

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.plan import Plan
    from memeval.evaluation.results import Run

TOOLS = "tools"
"""The column of the order in which a cell lists its tools."""


@click.command(name="run")
@click.argument("sweep")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of the run.")
@click.option("--dry-run", is_flag=True, help="Print cells, order and an estimate; run and write nothing.")
@host_option
@json_option
def command(sweep: str, out: Path | None, dry_run: bool, host: str | None, as_json: bool) -> None:
    """Run a sweep of trials, or go on with it.

    SWEEP is a file, or the name of one that comes with memeval. Results go to --out, by default
    results/<sweep>. Every trial is kept as soon as it is done: stop at any time, the same command goes on.
    """
    from memeval.evaluation.sweep import read_sweep

    described, _ = read_sweep(sweep)
    folder = out or Path("results") / described.sweep
    if dry_run:
        _dry_run(sweep, folder, server(host), as_json)
        return
    from memeval.evaluation.runner import run

    progress = TrialProgress()
    try:
        found = run(sweep, folder, host=server(host), progress=progress)
    except KeyboardInterrupt:
        kept = f"{progress.done} of {progress.total} trials are kept in {folder}" if progress.total else ""
        raise KeyboardInterrupt(
            f"stopped; {kept or 'no trial was begun'}; the same command goes on from there"
        ) from None
    finally:
        progress.close()
    data = summary(found)
    if as_json:
        emit(data)
    else:
        print_rates(data)
        print_notes(found, data)


# After a run


def rates_table(run: Run) -> pd.DataFrame:
    """One row a cell: its trials, and of the turns that ask to remember those called and stored."""
    from memeval.analysis.tables import asked_to_remember, saved

    trials, turns = run.trials, asked_to_remember(run.turns)
    turns = turns.assign(saved=saved(turns))
    valid = trials["outcome"] != "invalid"
    about = ["variant", "model", "calling", "tool_order", "embedder", "prefix", "smoke", "fidelity"]
    frame = run.cells[["cell", *about, "shape", "names", "words"]].copy()
    sizes = {"trials": valid, "invalid": ~valid, "model_failures": trials["outcome"] == "model_failure"}
    for name, which in sizes.items():
        counts = trials[which].groupby("cell").size()
        frame[name] = frame["cell"].map(counts).fillna(0).astype(int)
    for name, source, column in (
        ("passed", trials[valid], "passed"), ("called", turns, "called"), ("stored", turns, "saved"),
    ):  # fmt: skip
        judged = source[source[column].notna()]
        groups = judged.assign(value=judged[column].astype(int)).groupby("cell")["value"]
        frame[name] = frame["cell"].map(groups.sum()).fillna(0).astype(int)
        frame[f"{name}_of"] = frame["cell"].map(groups.count()).fillna(0).astype(int)
    return frame


def summary(run: Run) -> dict[str, Any]:
    """A run as data: its cells with their counts, what could not be run, what to do next."""
    return {
        "run": str(run.folder),
        "sweep": run.manifest.get("sweep", ""),
        "finished": run.manifest.get("finished", ""),
        "trials_planned": run.manifest.get("trials", 0),
        "damaged_lines": run.damaged,
        "left_out": run.left_out,
        "cells": records(rates_table(run)),
        "unsupported": run.manifest.get("unsupported", []),
        "next": f"memeval report {run.folder}",
    }


def print_rates(data: Mapping[str, Any]) -> None:
    """A summary's cells as a table."""
    cells = data["cells"]
    more = [n for n in ("tool_order", "embedder", "prefix") if len({cell[n] for cell in cells}) > 1]
    more += ["fidelity"] if any(cell["fidelity"] != "readable" for cell in cells) else []
    rates = ("passed", "called", "stored")
    rows = [
        [cell["variant"], cell["model"], cell["calling"], *(cell[n] for n in more), cell["trials"],
         *(_share(cell[name], cell[f"{name}_of"]) for name in rates), cell["invalid"]]
        for cell in cells
    ]  # fmt: skip
    numbers = [f">{name}" for name in ("trials", *rates, "invalid")]
    named = [TOOLS if name == "tool_order" else name for name in more]
    table(["design", "model", "calling", *named, *numbers], rows)
    click.echo(
        "passed: of valid trials; called, stored: of turns that ask to remember something. Pooled over\n"
        "stories and repeats; `memeval report` gives rates by family, with intervals.\n"
    )


def print_notes(run: Run, data: Mapping[str, Any]) -> None:
    """What a reader of the table must know, and what to do next."""
    if any(cell["smoke"] for cell in data["cells"]):
        click.echo("Bundled and scripted models are a smoke test, not a measurement of your model.")
    _print_unsupported(data["unsupported"])
    for cell in run.manifest.get("cells", []):
        if cell.get("fidelity") in ("unreadable", "overridden"):
            notes = short("; ".join(cell["fidelity_notes"]), 200)
            click.echo(
                f"{cell['variant']} on {cell['model']}, {cell['calling']}: {cell['fidelity']}: {notes}"
            )
    if run.damaged:
        click.echo(f"{len(run.damaged)} damaged lines of rows.jsonl were left out: {run.damaged[:10]}")
    if run.left_out:
        click.echo(
            f"Trials left out: {run.left_out}, of other cells, stories, seeds or repeats than the sweep had"
            " when it was last run."
        )
    if sum(cell["invalid"] for cell in data["cells"]):
        click.echo("Invalid trials count nowhere; the same command runs them again.")
    if (loads := int(run.trials["loads"].sum())) > len(run.trials) / 2:
        click.echo(
            f"The server loaded a model {loads} times in {len(run.trials)} trials: chat model and embedder"
            " do not stay loaded together, and all is slower. See `ollama ps` and OLLAMA_MAX_LOADED_MODELS."
        )
    click.echo(f"\nResults: {run.folder}\nNext:    {data['next']}")


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}% ({part}/{whole})" if whole else "–"


def _print_unsupported(unsupported: list[dict[str, str]]) -> None:
    for item in unsupported:
        click.echo(f"Unsupported: {item['design']} on {item['reason']}")


# Before a run


def _dry_run(sweep: str, folder: Path, host: str | None, as_json: bool) -> None:
    from memeval.evaluation.plan import opened
    from memeval.evaluation.sweep import read_sweep

    described, base = read_sweep(sweep)
    with opened(described, base, host) as plan:
        data = forecast(plan, folder)
    if as_json:
        emit(data)
        return
    orders = data["tool_order"]
    named = {"design": "design", "model": "model", "calling": "calling", "tool_order": TOOLS,
             "embedder": "embedder", "prefix": "prefix", "scenarios": ">scenarios", "repeats": ">repeats",
             "trials": ">trials", "to_run": ">to run"}  # fmt: skip
    if len(orders) == 1:
        del named["tool_order"]
    table(
        list(named.values()),
        [[_repeats(cell) if name == "repeats" else cell[name] for name in named] for cell in data["cells"]],
        title=f"sweep {data['sweep']}: {data['trials']} trials, {data['to_run']} to run",
    )
    _print_unsupported(data["unsupported"])
    tools = orders[0] if len(orders) == 1 else "each cell as its column says"
    click.echo(f"Order: {data['order']}; tools: {tools}.")
    for uneven in data["uneven_orders"]:
        click.echo(
            f"With {uneven['repeats']} repeat{'s' if uneven['repeats'] > 1 else ''} one tool order comes more"
            f" often (read_first {uneven['read_first']}, write_first {uneven['write_first']}); an even number"
            " balances them."
        )
    for perturbed in data["perturbed"]:
        _print_perturbed(perturbed)
    click.echo(f"Estimate: {data['estimate']}.")
    click.echo(f"Results would go to {folder}; nothing was run, nothing was written.")


def _repeats(cell: Mapping[str, Any]) -> str:
    even = cell["scenarios"] * cell["repeats"] == cell["trials"]
    return f"{'' if even else 'up to '}{cell['repeats']}"


def _print_perturbed(perturbed: Mapping[str, Any]) -> None:
    """Which levels of the accidents each repeat draws, and whether they are even."""
    accidents, repeats, even = perturbed["accidents"], perturbed["repeats"], perturbed["even_in"]
    rows = [[draw["repeat"], *(draw[name] for name in accidents)] for draw in repeats]
    click.echo("Perturbed by repeat, alike for every design, model and calling mode:\n")
    table([">repeat", *accidents], rows)
    click.echo()
    if len(repeats) % even:
        click.echo(f"In {len(repeats)} repeats not all levels meet equally often; in {even} they would.")
    if perturbed["no_paraphrases"]:
        click.echo(
            f"{perturbed['no_paraphrases']} of {perturbed['stories']} stories have no paraphrases; their "
            "request stays as written."
        )


def _perturbed(plan: Plan) -> list[dict[str, Any]]:
    """The draws of each set of accidents that the cells of a plan are perturbed by."""
    from memeval.evaluation.perturb import EVEN, can_be_reworded, drawn

    found = []
    for accidents in dict.fromkeys(cell.spec.accidents for cell in plan.cells if cell.spec.accidents):
        cells = [cell for cell in plan.cells if cell.spec.accidents == accidents]
        stories = {story.scenario: story for cell in cells for story in cell.planned.scenarios}
        fixed = sum(not can_be_reworded(story) for story in stories.values())
        repeats = range(max(cell.planned.repeats for cell in cells))
        found.append(
            {
                "accidents": list(accidents),
                "repeats": [{"repeat": n} | drawn(accidents, plan.sweep.seed, n) for n in repeats],
                "even_in": EVEN[len(accidents)],
                "stories": len(stories),
                "no_paraphrases": fixed if "request" in accidents else 0,
            }
        )
    return found


def _uneven_orders(plan: Plan) -> list[dict[str, int]]:
    """The odd numbers of repeats of cells whose tool order is balanced, and how often each order comes."""
    balanced = [cell for cell in plan.cells if cell.row.tool_order == "balanced" and cell.row.tools]
    odd = {repeats for cell in balanced for _, repeats in cell.planned.runs if repeats % 2}
    return [{"repeats": n, "read_first": n - n // 2, "write_first": n // 2} for n in sorted(odd)]


def forecast(plan: Plan, folder: Path) -> dict[str, Any]:
    """What a run would do, as data. The estimate is from trials that the folder holds, or there is none."""
    from memeval.evaluation.plan import BLOCK

    done, pace = _earlier(folder, plan.sweep.sweep)
    cells, left, seconds = [], 0, 0.0
    unknown: set[str] = set()
    for cell in plan.cells:
        row = cell.row
        to_run = sum(trial.key not in done for trial in cell.trials)
        cells.append(
            {
                "design": row.variant, "model": row.model, "calling": row.calling,
                "tool_order": row.tool_order, "embedder": row.embedder, "prefix": row.prefix,
                "scenarios": len({t.scenario.scenario for t in cell.trials}), "repeats": cell.planned.repeats,
                "trials": len(cell.trials), "to_run": to_run,
            }
        )  # fmt: skip
        left += to_run
        known = pace.get(row.cell, pace.get((row.model, row.calling)))
        if to_run and known is None:
            unknown.add(f"{row.model} ({row.calling})")
        seconds += to_run * (known or 0.0)
    return {
        "sweep": plan.sweep.sweep,
        "out": str(folder),
        "cells": cells,
        "unsupported": plan.unsupported,
        "trials": sum(len(cell.trials) for cell in plan.cells),
        "to_run": left,
        "order": f"models one after the other; within them repeats, blocks of {BLOCK} scenarios (a run that"
        " is stopped has all cells on nearly the same ones), cells in random order, scenarios",
        "tool_order": sorted({cell.row.tool_order for cell in plan.cells}),
        "uneven_orders": _uneven_orders(plan),
        "perturbed": _perturbed(plan),
        "estimated_seconds": None if unknown else round(seconds, 1),
        "estimate": _estimate(left, seconds, unknown),
    }


def _estimate(left: int, seconds: float, unknown: set[str]) -> str:
    if not left:
        return "all trials are done, so nothing would be run"
    if unknown:
        return f"not known: no trial of {', '.join(sorted(unknown))} was run here yet"
    return f"about {duration(seconds)}, from the mean of the trials that were run here"


def _earlier(folder: Path, sweep: str) -> tuple[set[str], Mapping[Any, float]]:
    """Keys of the trials that are done, and mean seconds a trial by cell and by model and calling mode."""
    from memeval.errors import InputError
    from memeval.evaluation.results import MANIFEST, counted, read_manifest, read_rows

    if not (folder / MANIFEST).is_file():
        return set(), {}
    manifest = read_manifest(folder)
    if manifest.get("sweep") != sweep:
        raise InputError(
            f"{folder} holds the run of sweep {manifest.get('sweep')!r}, not of {sweep!r};"
            " give --out another folder"
        )
    kind = {cell["cell"]: (cell.get("model"), cell.get("calling")) for cell in manifest.get("cells", [])}
    trials = counted(row for row in read_rows(folder) if row["table"] == "trial")
    seen: dict[Any, list[float]] = {}
    done = set()
    for key, trial in trials.items():
        if trial.get("outcome") == "invalid":
            continue
        done.add(key)
        spent = trial.get("seconds_model", 0.0) + trial.get("seconds_harness", 0.0)
        for name in (trial["cell"], kind.get(trial["cell"])):
            seen.setdefault(name, []).append(spent)
    return done, {name: sum(spent) / len(spent) for name, spent in seen.items()}
