"""Remembered: stricter than passed, since an answer can be right without any memory.

A question counts if it asks, in a later session, for what an earlier one told, and it counts as remembered if
memory put the value before the model and the answer was right. One that a broken trial never reached was not
remembered. A fact that can be known or guessed proves nothing, so it is left out: where the story marks it
guessable, and where the design `none` got it right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from memeval.analysis.intervals import rates
from memeval.analysis.tables import ROW, as_written, cell_keys
from memeval.analysis.unreached import PLACE, with_unreached
from memeval.evaluation import language
from memeval.evaluation.stories import Stories, turn_at
from memeval.messages import READS, WRITES
from memeval.scenarios.schema import Scenario, Turn

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

GUESSABLE, LUCKY = "guessable", "answered without memory"
"""Why a question is left out."""
NOT_REACHED = "not reached"


def remembered(run: Run) -> pd.DataFrame:
    """Questions about what an earlier session told, with `remembered`: stricter than `passed`.

    True where the answer was right and memory had put its value before the model; false too where the trial
    broke before it reached the question (`reached`). Null where an answer would prove nothing, and `left_out`
    says why: a fact asked for is marked guessable, or the design `none`, run on the same model and calling
    mode, once answered a question of the family right. `control` is whether `none` reached a question of the
    family at all, `story` whether the story was there to be looked into; where it was not, all questions
    after a session that asks to remember count, and nothing is known to be guessable.
    """
    import pandas as pd

    turns = as_written(with_unreached(run))
    questions = turns[turns["intent"].isin(READS) & ~turns["decoy"].astype(bool)]
    stories = Stories(run.manifest, run.folder)
    first = turns[turns["intent"].isin(WRITES)].groupby("scenario")["session"].min()
    kinds: dict[Any, tuple[str | None, bool]] = {}
    places = list(zip(*(questions[name] for name in PLACE), strict=True))
    for name, session, turn in dict.fromkeys(places):
        story = stories.find(name)
        if isinstance(story, Scenario) and turn_at(story, session, turn):
            kinds[name, session, turn] = _question(story, session, turn), True
        else:
            kinds[name, session, turn] = ("" if session > first.get(name, math.inf) else None), False
    frame = questions.assign(
        left_out=pd.Series([kinds[place][0] for place in places], index=questions.index, dtype="object"),
        story=pd.Series([kinds[place][1] for place in places], index=questions.index, dtype=bool),
    )
    frame = frame[frame["left_out"].notna()]
    bare = frame[(frame["design"] == "none") & (frame["outcome"] != "invalid") & frame["reached"]]
    mine = list(zip(frame["model"], frame["calling"], frame["family"], strict=True))
    known, lucky = (
        set(zip(part["model"], part["calling"], part["family"], strict=True))
        for part in (bare, bare[bare["answered"].fillna(False).astype(bool)])
    )
    out = [why or (LUCKY if key in lucky else "") for why, key in zip(frame["left_out"], mine, strict=True)]
    right = frame["retrieved"].fillna(False) & frame["answered"].fillna(False)
    frame = frame.assign(left_out=out, control=[key in known for key in mine])
    return frame.assign(remembered=right.astype("boolean").where(frame["left_out"] == ""))


def _question(story: Scenario, session: int, turn: int) -> str | None:
    """`""` where a turn asks for what only earlier sessions told, or `guessable`; None where it does not."""
    asks = turn_at(story, session, turn)
    wanted = asks.expect.answer.states if asks and asks.expect and asks.expect.facts else []
    here = story.sessions[session - 1].turns[: turn - 1]
    user = story.sessions[session - 1].user
    before = [said for past in story.sessions[: session - 1] if past.user == user for said in past.turns]

    def told(name: str, turns: Sequence[Turn]) -> bool:
        return any(
            language.names(said.user, story.facts[name].values)
            or (said.expect and said.expect.intent in WRITES and name in said.expect.facts)
            for said in turns
        )

    if not wanted or not all(told(name, before) and not told(name, here) for name in wanted):
        return None
    return GUESSABLE if any(story.facts[name].guessable for name in wanted) else ""


def kept(questions: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Of `remembered`: the rates of `passed` and of `remembered` on the same turns; `step` says which."""
    import pandas as pd

    frame = questions[questions["remembered"].notna()]
    keys = cell_keys(questions)
    steps = ("passed", "remembered")
    parts = [rates(frame, keys, value=step, level=level).assign(step=step) for step in steps]
    return pd.concat(parts).sort_values(list(ROW), kind="stable", ignore_index=True)


def left_out(questions: pd.DataFrame) -> pd.DataFrame:
    """Of `remembered`: how many questions of each cell count, and how many do not, for which reason.

    `not reached` are those that count, as not remembered, although the model had failed before them.
    """
    import pandas as pd

    keys = cell_keys(questions)
    rows = []
    valid = questions[questions["outcome"] != "invalid"]
    for key, group in valid.groupby(keys, sort=True, dropna=False, observed=True):
        why = Counter(group["left_out"])
        unsure = {"without control": (~group["control"]).sum(), "without story": (~group["story"]).sum()}
        rows.append(
            dict(zip(keys, key, strict=True))
            | {"questions": len(group), "counted": why[""]}
            | {NOT_REACHED: int(((group["left_out"] == "") & ~group["reached"]).sum())}
            | {GUESSABLE: why[GUESSABLE], LUCKY: why[LUCKY]}
            | unsure
        )
    columns = ["questions", "counted", NOT_REACHED, GUESSABLE, LUCKY, "without control", "without story"]
    return pd.DataFrame(rows, columns=[*keys, *columns])
