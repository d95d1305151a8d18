"""The truth table of the matcher of calls: what is made, what is wanted, whether it fits."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.evaluation.matcher import calls_match

SAVE, NOTE, FIND, GET, DROP = (
    {"remember"},
    {"note", "remember"},
    {"search", "recall"},
    {"recall"},
    {"forget"},
)
UPDATE = {"update", "remember"}


@pytest.mark.parametrize(
    ("made", "wanted", "more", "fits"),
    [
        # unconstrained: anything goes
        ([], None, {}, True),
        ([SAVE], None, {}, True),
        ([SAVE, FIND, DROP], None, {"extra": False, "ordered": True}, True),
        # exactly empty: no call at all
        ([], [], {}, True),
        ([FIND], [], {}, False),
        ([FIND], [], {"extra": True}, False),
        ([set()], [], {}, False),
        # partial: what is wanted is among the calls
        ([SAVE], ["remember"], {}, True),
        ([], ["remember"], {}, False),
        ([FIND], ["remember"], {}, False),
        ([NOTE], ["remember"], {}, True),
        ([NOTE], ["note"], {}, True),
        ([SAVE, FIND], ["remember", "search"], {}, True),
        ([SAVE], ["remember", "search"], {}, False),
        ([FIND, FIND], ["search", "recall"], {}, True),
        # one call does not stand for two
        ([NOTE], ["note", "remember"], {}, False),
        ([FIND], ["search", "recall"], {}, False),
        ([SAVE], ["remember", "remember"], {}, False),
        ([SAVE, SAVE], ["remember", "remember"], {}, True),
        # a call that serves two is kept for the one that nothing else serves
        ([NOTE, SAVE], ["remember", "note"], {}, True),
        ([FIND, GET], ["recall", "search"], {}, True),
        ([GET, FIND], ["recall", "search"], {}, True),
        # extra calls
        ([SAVE, FIND], ["remember"], {}, True),
        ([SAVE, FIND], ["remember"], {"extra": False}, False),
        ([SAVE], ["remember"], {"extra": False}, True),
        ([SAVE, SAVE], ["remember"], {"extra": False}, False),
        ([SAVE, set()], ["remember"], {"extra": False}, False),
        ([SAVE, set()], ["remember"], {}, True),
        # exact, in any order
        ([FIND, UPDATE], ["update", "search"], {"extra": False}, True),
        ([FIND, DROP], ["update", "search"], {"extra": False}, False),
        # order
        ([FIND, UPDATE], ["search", "update"], {"ordered": True}, True),
        ([UPDATE, FIND], ["search", "update"], {"ordered": True}, False),
        ([FIND, SAVE, UPDATE], ["search", "update"], {"ordered": True}, True),
        ([FIND, SAVE, UPDATE], ["search", "update"], {"ordered": True, "extra": False}, False),
        ([UPDATE, FIND, UPDATE], ["search", "update"], {"ordered": True}, True),
        ([FIND], ["search", "update"], {"ordered": True}, False),
        ([FIND, GET], ["recall", "recall"], {"ordered": True}, True),
        # a call of no memory tool serves nothing
        ([set()], ["remember"], {}, False),
    ],
)
def test_truth_table(
    made: list[set[str]], wanted: list[str] | None, more: dict[str, bool], fits: bool
) -> None:
    assert calls_match(made, wanted, **more) is fits  # type: ignore[arg-type]


INTENTS = st.sampled_from(["remember", "recall", "search", "update", "forget"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sets(INTENTS, max_size=3), max_size=4), st.lists(INTENTS, min_size=1, max_size=3))
def test_it_agrees_with_trying_every_assignment(made: list[set[str]], wanted: list[str]) -> None:
    ways = list(permutations(range(len(made)), len(wanted)))
    fits = any(all(w in made[at] for w, at in zip(wanted, way, strict=True)) for way in ways)
    assert calls_match(made, wanted) is fits  # type: ignore[arg-type]
    in_order = any(
        all(w in made[at] for w, at in zip(wanted, way, strict=True))
        for way in ways
        if list(way) == sorted(way)
    )
    assert calls_match(made, wanted, ordered=True) is in_order  # type: ignore[arg-type]
