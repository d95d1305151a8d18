"""The turns that a trial never reached, because its model had failed before.

A model's mistake is a score: what a story asks for at its end counts against a trial that broke on the way
there. What a story goes on to ask is read off the trials that came further, else off the story itself, where
it is still the one that was run. Where neither is there (`unknown`), only what some trial reached is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from memeval.evaluation.checks import control
from memeval.evaluation.rows import TurnRow
from memeval.evaluation.stories import Stories
from memeval.scenarios.schema import Expect, Scenario, Session

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.results import Run

PLACE = ("scenario", "session", "turn")
_EXPECTED = ("intent", "decoy", "strength")
_OWN = {spec.name for spec in fields(TurnRow)} - {
    "trial_key", "attempt", "perturbed_names", "request", "distractors",
}  # fmt: skip
"""The columns of a turn; those of its trial that have the same name say another thing."""


def with_unreached(run: Run) -> pd.DataFrame:
    """The turns of a run, and below them those that broken trials never reached: `reached` says which.

    Such a turn has not passed; its stages are null, since they were never put to the test. `asks` is whether
    it is a turn that no trial reached and that asks for an answer which does not stand in its conversation;
    of other turns the rows of the trials that reached them tell.
    """
    import pandas as pd

    turns = run.turns.assign(reached=True, asks=False)
    broken = run.trials[run.trials["outcome"] == "model_failure"]
    if not len(broken):
        return turns
    mine = turns[turns["scenario"].isin(broken["scenario"])]
    seen = mine.drop_duplicates(list(PLACE), keep="last")[[*PLACE, *_EXPECTED, "asks"]]
    found = {name: story for name, story in _unfinished(run).items() if story is not None}
    told = pd.DataFrame([row for story in found.values() for row in _places(story)], columns=seen.columns)
    places = pd.concat([seen, told.astype(seen.dtypes)]).drop_duplicates(list(PLACE))
    shared = [name for name in turns if name in broken and name not in _OWN]
    rest = broken[shared].merge(places, on="scenario")
    key = ["trial_key", "session", "turn"]
    rest = rest[~pd.MultiIndex.from_frame(rest[key]).isin(pd.MultiIndex.from_frame(turns[key]))]
    blank = {name: value for name, value in asdict(TurnRow(trial_key="")).items() if name not in rest}
    rest = rest.assign(**blank | {"passed": False, "reached": False})
    return pd.concat([turns, rest[list(turns)].astype(turns.dtypes)], ignore_index=True)


def unknown(run: Run) -> int:
    """How many broken trials are of stories whose rest is not known."""
    lost = {name for name, story in _unfinished(run).items() if story is None}
    broken = run.trials["outcome"] == "model_failure"
    return int((broken & run.trials["scenario"].isin(lost)).sum())


def _unfinished(run: Run) -> Mapping[str, Scenario | None]:
    """The stories that no trial came to the end of; None where a story is not here as it was run."""
    trials = run.trials
    ended = set(trials.loc[trials["outcome"] == "ok", "scenario"])
    names = sorted(set(trials.loc[trials["outcome"] == "model_failure", "scenario"]) - ended)
    stories = Stories(run.manifest, run.folder) if names else None
    found = {name: stories.find(name) if stories else None for name in names}
    return {name: story if isinstance(story, Scenario) else None for name, story in found.items()}


def _places(story: Scenario) -> Iterator[dict[str, Any]]:
    """The turns of a story, with what they expect."""
    for s, session in enumerate(story.sessions, 1):
        for t, turn in enumerate(session.turns, 1):
            row = TurnRow(trial_key="", session=s, turn=t)
            row.expecting(turn)
            expected = {name: getattr(row, name) for name in _EXPECTED}
            asks = turn.expect is not None and _asks(story, session, t, turn.expect)
            yield {"scenario": story.scenario, "session": s, "turn": t, **expected, "asks": asks}


def _asks(story: Scenario, session: Session, turn: int, expect: Expect) -> bool:
    """Whether a turn asks for an answer, and not for one that was said before in its session (a control)."""
    wanted = [story.facts[name] for name in expect.facts]
    said = [before.user for before in session.turns[: turn - 1]]
    return expect.answer.asks and ("called" in expect.required or not control(wanted, said))
