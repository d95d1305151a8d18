"""Accidents that are drawn anew for each repeat: how much of a design's rate hangs on them?

The order of its tools, their names, the words of the user's request and the presence of other tools say
nothing about a design. Each has two levels; each repeat of a cell draws a combination of them, the same for
every design, model and calling mode of the sweep, so that pairs stay paired.

The combinations of k accidents are dealt out in half fractions of the full two-level array: the 2^(k-1) rows
whose levels have the same product come first, in random order, then the other half, then both again in
another order. For even k a row is followed by its mirror image. Which half comes first, and all orders, are
drawn by the sweep's seed. So each level comes equally often in every even number of repeats (of three
accidents: in every multiple of four), and so does every pair of levels of two accidents in every multiple of
`EVEN[k]`: for three accidents a fraction of resolution III, for four one of resolution IV (Box, Hunter &
Hunter, Statistics for Experimenters, 2nd edition, chapter 6). What a repeat draws does not depend on how many
repeats there are: a sweep that is given more of them goes on with the trials it has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any, Literal, get_args

from memeval.designs.base import MemoryDesign
from memeval.designs.distractors import crowded, distractors
from memeval.designs.registry import DesignSpec
from memeval.designs.surface import Names
from memeval.owncode import own_code
from memeval.scenarios.schema import Scenario, Turn

Accident = Literal["order", "names", "request", "distractors"]
ACCIDENTS: tuple[Accident, ...] = get_args(Accident)
LEVELS: Mapping[Accident, tuple[str, str]] = {
    "order": ("read_first", "write_first"),
    "names": ("as_written", "neutral"),
    "request": ("as_written", "paraphrased"),
    "distractors": ("none", "some"),
}
"""The level that an effect is measured from, and the one it is measured to."""
EVEN: Mapping[int, int] = {1: 2, 2: 4, 3: 4, 4: 8}
"""By the number of accidents: a multiple of so many repeats has every pair of levels equally often."""
REPEATS = 8
"""Repeats of what is perturbed, where a sweep names no number."""


def drawn(accidents: Sequence[Accident], seed: int, repeat: int) -> dict[Accident, str]:
    """The level of each accident in a repeat."""
    cycle, at = divmod(repeat, 2 ** len(accidents))
    row = _cycle(len(accidents), seed, cycle)[at]
    chosen = sorted(accidents, key=ACCIDENTS.index)
    return {name: LEVELS[name][level] for name, level in zip(chosen, row, strict=True)}


@lru_cache(maxsize=256)
def _cycle(count: int, seed: int, cycle: int) -> tuple[tuple[int, ...], ...]:
    """All combinations of so many two-level accidents, dealt out in halves; levels as 0 and 1."""
    draw = Random(f"{seed}/perturb/{count}/{cycle}")
    rows: list[tuple[int, ...]] = []
    for sign in draw.sample((-1, 1), 2):
        half = [row for row in product((-1, 1), repeat=count) if math.prod(row) == sign]
        groups = [[row] for row in half]
        if count % 2 == 0:  # a row and its mirror image have the same product
            groups = [[row, tuple(-level for level in row)] for row in half if row[0] < 0]
        for group in draw.sample(groups, len(groups)):
            rows += draw.sample(group, len(group))
    return tuple(tuple((level + 1) // 2 for level in row) for row in rows)


def reworded(story: Scenario, pick: int) -> Scenario:
    """The story with its turns in other words: of each turn's paraphrases the one whose turn it is.

    A turn without paraphrases stays as written; a story without any is given back itself.
    """

    def said(turn: Turn) -> Turn:
        if not turn.paraphrases:
            return turn
        return turn.model_copy(update={"user": turn.paraphrases[pick % len(turn.paraphrases)]})

    if not can_be_reworded(story):
        return story
    sessions = [s.model_copy(update={"turns": [said(turn) for turn in s.turns]}) for s in story.sessions]
    return story.model_copy(update={"sessions": sessions})


def can_be_reworded(story: Scenario) -> bool:
    """Whether some turn of a story has paraphrases."""
    return any(turn.paraphrases for session in story.sessions for turn in session.turns)


@dataclass(frozen=True, slots=True)
class Look:
    """A design as one combination of names and distractors shows it; `shown` is what of it enters a key."""

    design: Callable[[], MemoryDesign]
    names: Names
    shown: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a trial is, once its accidents are drawn. Levels are those that came about.

    A story without paraphrases is told `as_written`; a design whose names cannot be changed keeps them.
    """

    scenario: Scenario
    design: Callable[[], MemoryDesign]
    order: str
    names: Names = "as_written"
    request: str = "as_written"
    distractors: str = "none"
    shown: tuple[Any, ...] = ()
    """What of it enters the trial's key, beside the story and the order."""


@dataclass(frozen=True, slots=True)
class Perturbation:
    """The accidents that are drawn for a design, in the order of `ACCIDENTS`, and its looks under them."""

    accidents: tuple[Accident, ...]
    looks: Mapping[tuple[str, str], Look]
    """By the levels of names and distractors."""

    def draw(self, story: Scenario, seed: int, repeat: int, order: str) -> Drawn:
        """A story's trial of a repeat; `order` is that of its tools where it is not drawn."""
        levels = drawn(self.accidents, seed, repeat)
        told = story
        if levels.get("request") == "paraphrased":
            # the paraphrases take turns over the repeats that have one
            earlier = (drawn(self.accidents, seed, before)["request"] for before in range(repeat))
            told = reworded(story, sum(level == "paraphrased" for level in earlier))
        names, others = (levels.get(name, LEVELS[name][0]) for name in _OF_LOOKS)
        look = self.looks[names, others]
        return Drawn(
            scenario=told, design=look.design, order=levels.get("order", order), names=look.names,
            request=LEVELS["request"][told is not story], distractors=others, shown=look.shown,
        )  # fmt: skip


_OF_LOOKS: tuple[Accident, Accident] = ("names", "distractors")


def perturbation(design: DesignSpec, accidents: Sequence[Accident]) -> Perturbation | None:
    """What is drawn for a design; None where nothing is.

    Raises InputError where a tool of the design has the name of a distractor.
    """
    if not accidents:
        return None
    varied = (LEVELS[name] if name in accidents else LEVELS[name][:1] for name in _OF_LOOKS)
    looks = {(names, others): _look(design, names, others) for names, others in product(*varied)}
    return Perturbation(tuple(name for name in ACCIDENTS if name in accidents), looks)


def _look(design: DesignSpec, names: str, others: str) -> Look:
    plain = names == "as_written"
    named = design if plain else design.behind(replace(design.surface, names="neutral"))
    # where names cannot be changed, because there is no tool, the surface is left as it was
    level: Names = "as_written" if plain or named == design else "neutral"
    if others == "none":
        return Look(named, level, ("perturbed", named.fingerprint()))
    beside = crowded(named)
    with own_code(f"design {design.design.name!r}, when made,"):
        beside()  # a clash of names is found before anything runs
    said = [tool.schema() for tool in distractors()]
    return Look(beside, level, ("perturbed", named.fingerprint(), said))
