"""How far a judge and the rules say the same of the same replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memeval.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far a judge agrees with the rules, over the turns on which it gave a verdict.

    `rate` is the share of equal verdicts. `kappa` is Cohen's, (rate - chance) / (1 - chance): chance is the
    rate of two who say yes as often as these and look at nothing, yes x yes + no x no. Both are null without
    a verdict, kappa also where chance is 1. `disagreements` and `unread` (no verdict) are rows of the frame.
    """

    judge: str
    digest: str
    prompt_version: str
    both_yes: int
    rules_only: int
    judge_only: int
    both_no: int
    rate: float | None
    kappa: float | None
    disagreements: list[dict[str, Any]] = field(default_factory=list)
    unread: list[dict[str, Any]] = field(default_factory=list)

    @property
    def turns(self) -> int:
        """Turns with a verdict."""
        return self.both_yes + self.rules_only + self.judge_only + self.both_no

    def __str__(self) -> str:
        told = f"{self.judge} ({self.digest[:12]}, prompt {self.prompt_version}) "
        if self.rate is None:
            return f"{told}gave no verdict on any of {len(self.unread)} turns"
        kappa = "not defined" if self.kappa is None else f"{self.kappa:.2f}"
        told += f"agrees with the rules on {self.both_yes + self.both_no} of {self.turns} turns "
        told += (
            f"({self.rate:.0%}), Cohen's kappa {kappa}: both yes {self.both_yes}, both no {self.both_no}, "
        )
        told += f"only the rules yes {self.rules_only}, only the judge yes {self.judge_only}"
        return told + (f"; no verdict on {len(self.unread)}, on neither side" if self.unread else "")


def agreement(frame: pd.DataFrame) -> Agreement:
    """How far the one judge of a frame of `judge_run` agrees with the rules.

    Raises InputError for a frame of several judges, and of none.
    """
    judges = frame[["judge_model", "judge_digest", "prompt_version"]].drop_duplicates().to_numpy().tolist()
    if len(judges) != 1:
        raise InputError(f"agreement is that of one judge with the rules; the frame has {len(judges)} judges")
    rows = [_null_for_na(row) for row in frame.to_dict("records")]
    unread = [row for row in rows if row["judge"] is None]
    given = [row for row in rows if row["judge"] is not None]
    counts = Counter((row["rules"], row["judge"]) for row in given)
    rate = kappa = None
    if n := len(given):
        rate = (counts[True, True] + counts[False, False]) / n
        rules = (counts[True, True] + counts[True, False]) / n
        judge = (counts[True, True] + counts[False, True]) / n
        chance = rules * judge + (1 - rules) * (1 - judge)
        kappa = None if chance == 1 else (rate - chance) / (1 - chance)
    name, version, prompt = judges[0]
    return Agreement(
        judge=name, digest=version, prompt_version=prompt, both_yes=counts[True, True],
        rules_only=counts[True, False], judge_only=counts[False, True], both_no=counts[False, False],
        rate=rate, kappa=kappa, disagreements=[row for row in given if row["rules"] != row["judge"]],
        unread=unread,
    )  # fmt: skip


def _null_for_na(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of a frame as plain data, so that it can be printed as JSON."""
    import pandas as pd

    return {str(name): None if value is pd.NA else value for name, value in row.items()}
