"""The rules against real transcripts that were labelled by reading, before any rule was seen on them.

`labelled_turns.jsonl` holds every turn of 126 trials of Qwen2.5-Coder 0.5B on Ollama 0.24 in the sweep
`please_remember`, drawn evenly over cells and kinds of stories, and of 60 of the sweep `designs` that ended
with a reply, because the first hold few answers that are right. The labels come from reading alone, and no
rule was changed after them; the test half is only counted. `pytest -rP` prints both. So weak a model says
little that a rule could miss: agreement here is mostly that nothing is seen where nothing is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memeval.evaluation import language

TURNS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "labelled_turns.jsonl").read_text(encoding="utf-8").splitlines()
]
Row = Mapping[str, Any]


def gives(row: Row) -> bool:
    """As `answer: {states}` is judged."""
    stated = all(language.states(row["reply"], values) for values in row["asked"])
    return stated and not language.echoes(row["reply"], row["user"])


def kept(row: Row) -> bool:
    """As the stage `stored` is judged."""
    return bool(row["written"]) and all(
        any(language.names(text, values) for text in row["written"]) for values in row["told"]
    )


RULES: Mapping[str, Callable[[Row], bool]] = {
    "claims_save": lambda row: language.claims_save(row["reply"]),
    "gives": gives,
    "refuses": lambda row: language.refuses(row["reply"]),
    "admits_unknown": lambda row: language.admits_unknown(row["reply"]),
    "kept": kept,
    "echo": lambda row: language.echoes(row["reply"], row["user"]),
}


def test_a_hundred_trials_are_labelled_and_both_halves_are_there() -> None:
    assert len({row["trial"] for row in TURNS}) >= 100
    assert {row["split"] for row in TURNS} == {"dev", "test"}
    labelled = Counter(name for row in TURNS for name in row["labels"])
    assert set(labelled) == set(RULES)


@pytest.mark.parametrize("split", ["dev", "test"])
@pytest.mark.parametrize("name", RULES)
def test_how_far_a_rule_agrees_with_the_labels(name: str, split: str) -> None:
    rows = [row for row in TURNS if row["split"] == split and name in row["labels"]]
    pairs = Counter((row["labels"][name], RULES[name](row)) for row in rows)
    agree = (pairs[True, True] + pairs[False, False]) / len(rows)
    print(
        f"{name}, {split}: {agree:.3f} of {len(rows)} turns; both yes {pairs[True, True]}, label alone"
        f" {pairs[True, False]}, rule alone {pairs[False, True]}, both no {pairs[False, False]}"
    )
    assert agree >= 0.95
