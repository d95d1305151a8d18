"""Which stage broke a failed story: the first one that, put right, makes the answer right.

Every failed trial whose answer was wrong is told again up to that turn, with one thing put right at a time
(`evaluation/replay.py`), each some five times beside as many replays with nothing changed. Blamed is the
first substitution, in the order of the chain, that beats this control by Fisher's exact test (one-sided);
else the failure is unstable. Where only the fact in the context helps although memory had not shown it, more
than one stage is broken. What needs no model to tell (a look-up that cannot help because nothing was saved)
is told from the trial's own evidence.

The control matters: a weak model answers otherwise each time, and what it would have got right anyway must
not be credited to a repair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.analysis.failures import Failure, failures_of, sample
from memeval.errors import InfrastructureError
from memeval.evaluation.checks import all_named
from memeval.evaluation.evidence import read_back
from memeval.evaluation.journal import Journal, read_lines, to_line
from memeval.evaluation.memories import Memories
from memeval.evaluation.plan import Plan, opened
from memeval.evaluation.replay import SUBSTITUTIONS, Break, Replayed, Substitution, applies, replay
from memeval.evaluation.results import load
from memeval.evaluation.sweep import Sweep

if TYPE_CHECKING:
    import pandas as pd

BLAME = "blame.jsonl"
LEVEL = 0.1
"""With five seeds a side, a repair counts from 3 right of 5 against none, 4 against none, 5 against two."""
NAMES: Mapping[str, str] = {
    "gold write": "did not save",
    "gold text": "saved badly",
    "forced recall": "did not look",
    "gold query": "asked badly",
    "oracle hit": "not retrieved",
    "in context": "retrieved but unused",
}
SEVERAL, UNSTABLE = "more than one stage", "unstable"
STAGES = (*NAMES.values(), SEVERAL, UNSTABLE)
Progress = Callable[[int, int], None]


@dataclass(slots=True, kw_only=True)
class BlameRow:
    """One failed trial and what was blamed for it; `right` of `seeds` replays a substitution."""

    trial_key: str
    cell: str = ""
    scenario: str = ""
    family: str = ""
    session: int = 0
    turn: int = 0
    blamed: str = ""
    seeds: int = 0
    right: dict[str, int] = field(default_factory=dict)
    not_tried: dict[str, str] = field(default_factory=dict)
    in_sample: bool = True


def blame(
    run: str | Path, *, most: int = 60, seeds: int = 5, level: float = LEVEL, every: bool = False,
    base: Path | None = None, host: str | None = None, progress: Progress | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Blame the failures of a run, at most so many of them, and give one row a failed trial.

    Failures are drawn evenly over cells and broken stages. What was found is kept in the run's folder, so
    that the same call goes on where it was stopped. `every` tries all substitutions, not only as many as it
    takes to find the first that helps.

    Raises InputError where the run kept no transcripts, InfrastructureError when the server is gone.
    """
    folder = Path(run)
    loaded = load(folder)
    sweep = Sweep.model_validate(loaded.manifest["definition"])
    with opened(sweep, base or Path.cwd(), host) as plan:
        failures = failures_of(loaded.trials, plan, folder)
        journal = Journal(folder / BLAME, commits=(b'{"table": "blame"',))
        try:
            known = {row["trial_key"] for row in read_lines(folder / BLAME)}
            chosen = sample([f for f in failures if f.broken], most, sweep.seed)
            for failure in failures:
                if failure.broken is None and failure.row["trial_key"] not in known:
                    journal.append(to_line("blame", _row(failure, blamed=failure.label, in_sample=False)))
            with _Replays(plan, seeds, level, every) as replays:
                for number, failure in enumerate(chosen):
                    (progress or _quiet)(number, len(chosen))
                    if failure.row["trial_key"] not in known:
                        journal.append(to_line("blame", replays.blame(failure)))
            (progress or _quiet)(len(chosen), len(chosen))
        finally:
            journal.close()
    return read_blame(folder)


def read_blame(run: str | Path) -> pd.DataFrame:
    """What was blamed in a run, one row a failed trial with its cell's columns; empty before `blame`."""
    import pandas as pd

    loaded = load(run)
    rows = [
        {key: value for key, value in row.items() if key != "table"} for row in read_lines(Path(run) / BLAME)
    ]
    defaults = asdict(BlameRow(trial_key=""))
    frame = pd.DataFrame([{**defaults, **row} for row in rows], columns=list(defaults))
    counted = set(loaded.trials["trial_key"])
    columns = ["cell", "design", "variant", "model", "calling", "smoke", "fidelity"]
    own = frame[frame["trial_key"].isin(counted)].drop_duplicates("trial_key", keep="last")
    return own.merge(loaded.cells[columns], on="cell", how="left")


def waterfall(blamed: pd.DataFrame) -> pd.DataFrame:
    """Failures a stage, per model, calling mode and design: `failures` of the sample of `sampled`."""
    import pandas as pd

    keys = ["model", "calling", "variant"]
    parts = []
    for key, group in blamed[blamed["in_sample"]].groupby(keys, sort=True):
        counts = Counter(group["blamed"])
        parts += [
            dict(zip(keys, key, strict=True))
            | {"stage": stage, "failures": counts[stage], "sampled": len(group)}
            for stage in STAGES
        ]
    return pd.DataFrame(parts, columns=[*keys, "stage", "failures", "sampled"])


class _Replays:
    """Replays of one run's failures, each over fresh stores."""

    def __init__(self, plan: Plan, seeds: int, level: float, every: bool) -> None:
        self._plan, self._seeds, self._level, self._every = plan, seeds, level, every
        self._memories = Memories(plan)
        self._count = 0

    def __enter__(self) -> _Replays:
        return self

    def __exit__(self, *error: object) -> None:
        self._memories.close()

    def blame(self, failure: Failure) -> BlameRow:
        """Try the substitutions that could help, in the order of the chain."""
        broken = failure.broken
        assert broken is not None
        may = applies(broken, injects="before_turn" in failure.cell.row.hooks)
        control = self._tried(failure, broken, "control") or 0
        row = _row(failure, seeds=self._seeds, right={"control": control})
        for substitution in SUBSTITUTIONS:
            if row.blamed and not self._every:
                break
            if not may[substitution]:
                row.not_tried[substitution] = "cannot change anything"
                continue
            right = self._tried(failure, broken, substitution)
            if right is None:
                row.not_tried[substitution] = "the design has no tool for it"
                continue
            row.right[substitution] = right
            if not row.blamed and _beats(right, control, self._seeds, self._level):
                row.blamed = self._name(substitution, broken)
        row.blamed = row.blamed or UNSTABLE
        return row

    def _name(self, substitution: Substitution, broken: Break) -> str:
        """The stage that a repair speaks for."""
        if substitution != "in context":
            return NAMES[substitution]
        judged = {(turn.session, turn.turn): turn for turn in read_back(broken.evidence)}
        shown = judged[broken.at].trace.shown()
        seen = all_named(broken.facts, shown)
        told_here = broken.planted is not None and broken.planted[0] == broken.at[0]
        return NAMES[substitution] if seen or told_here else SEVERAL

    def _tried(self, failure: Failure, broken: Break, substitution: Substitution) -> int | None:
        """How many of the replays were answered right; None where the substitution cannot be made."""
        right = 0
        for number in range(self._seeds):
            seed = (broken.trial.seed + 7919 * (number + 1)) % 2**31
            done = self._once(failure, broken, substitution, seed)
            if done is None:
                return None
            if done.outcome == "invalid":
                raise InfrastructureError(
                    f"stopped while replaying {broken.trial.scenario.scenario}: {done.reason}; what was"
                    " blamed so far is kept, and the same command goes on from there",
                    kind="server_down",
                )
            right += done.right
        return right

    def _once(
        self, failure: Failure, broken: Break, substitution: Substitution, seed: int
    ) -> Replayed | None:
        self._count += 1
        model = self._plan.models[failure.cell.row.model]
        with self._memories.fresh(failure.cell, f"{broken.trial.key}-{self._count}") as open_store:
            return replay(broken, substitution, seed, model, open_store)


def _row(failure: Failure, **more: Any) -> BlameRow:
    at = failure.broken.at if failure.broken else (0, 0)
    row = failure.row
    return BlameRow(
        trial_key=row["trial_key"], cell=failure.cell.row.cell, scenario=row["scenario"],
        family=row["family"], session=at[0], turn=at[1], **more,
    )  # fmt: skip


def _beats(right: int, control: int, seeds: int, level: float) -> bool:
    """Whether so many right answers are more than the control's, by Fisher's exact test, one-sided."""
    from scipy.stats import fisher_exact

    if right <= control:
        return False
    table = [[right, seeds - right], [control, seeds - control]]
    return bool(fisher_exact(table, alternative="greater").pvalue <= level)


def _quiet(done: int, total: int) -> None:
    pass
