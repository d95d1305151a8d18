"""Stories as a collection: counted by folder, compared with each other, their questions put alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.errors import InputError
from memeval.scenarios.corpus import asked_alone, counts, nearest_pairs, never_asked, read_all
from memeval.scenarios.lint import plain
from memeval.scenarios.loader import load_scenarios
from memeval.scenarios.schema import Scenario

STORY = """\
scenario: {name}
family: {family}
title: A story
tags: [{tags}]
facts:
  colour: {{text: The colour is {name}., values: [{name}]}}
sessions:
  - at: 2026-01-01T09:00:00Z
    turns:
      - user: My colour is {name}.
        expect: {{intent: remember, facts: [colour]}}
  - at: 2026-01-02T09:00:00Z
    turns:
      - user: Which colour of {family}?
        expect: {{intent: recall, answer: {{states: [colour]}}}}
"""


def write(folder: Path, name: str, family: str = "", tags: str = "warm") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(STORY.format(name=name, family=family or name, tags=tags), encoding="utf-8")
    return path


def told(family: str, *texts: str) -> Scenario:
    turns = [{"user": text} for text in texts]
    name = f"story-{family}"
    data = {"scenario": name, "family": family, "title": "T", "sessions": [{"turns": turns}]}
    return Scenario.model_validate(data)


def story(*turns: dict[str, Any], **more: Any) -> Scenario:
    facts = {name: {"text": f"It is {name}.", "values": [name]} for name in ("teal", "ochre")}
    data = {
        "scenario": "s",
        "family": "f",
        "title": "T",
        "facts": facts,
        "sessions": [{"turns": list(turns)}],
    }
    return Scenario.model_validate(data | more)


# read and counted


def test_stories_are_read_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    good = write(tmp_path, "teal")
    (tmp_path / "bad.yaml").write_text("scenario: x\n", encoding="utf-8")
    (tmp_path / "twin.yaml").write_text(good.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    scenarios, errors = read_all([tmp_path, good])
    assert [scenario.scenario for scenario in scenarios] == ["teal"]
    assert [error.split(": ")[0].rpartition("/")[2] for error in errors] == [
        "bad.yaml:1", "empty.yaml:1", "twin.yaml:1",
    ]  # fmt: skip
    for path, said in ((tmp_path / "nope", "no such file"), (tmp_path / "sweeps", "no story file")):
        (tmp_path / "sweeps").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=said):
            read_all([path])


def test_a_folder_is_counted_by_stories_families_halves_intents_and_tags(tmp_path: Path) -> None:
    write(tmp_path / "a", "teal", "one")
    write(tmp_path / "a", "ochre", "one", tags="cold")
    write(tmp_path / "b" / "c", "azure", "two")
    scenarios, _ = read_all([tmp_path])
    first, second, both = counts(scenarios)
    assert (first.folder, second.folder, both.folder) == ("a", "b/c", "")
    assert (first.stories, first.families, first.turns) == (2, 1, 4)
    assert first.intents == {"remember": 2, "recall": 2}
    assert first.tags == {"warm": 1, "cold": 1}
    assert (both.stories, both.families, both.dev + both.test) == (3, 2, 2)
    assert both.dev == len({s.family for s in scenarios if s.split == "dev"})


def test_stories_of_one_folder_are_counted_under_its_name(tmp_path: Path) -> None:
    scenarios, _ = read_all([write(tmp_path / "warm", "teal")])
    assert [count.folder for count in counts(scenarios)] == ["warm", ""]
    assert [count.stories for count in counts([])] == [0]


# alike


def test_the_most_alike_texts_of_different_families_are_found_with_their_lines(tmp_path: Path) -> None:
    write(tmp_path, "teal", "home")
    write(tmp_path, "ochre", "work")
    scenarios, _ = read_all([tmp_path])
    (pair,) = nearest_pairs(scenarios)
    assert [pair.first.text, pair.second.text] == ["Which colour of work?", "Which colour of home?"]
    assert {pair.first.line, pair.second.line} == {14}
    assert {said.file and said.file.name for said in (pair.first, pair.second)} == {"teal.yaml", "ochre.yaml"}
    assert 0.5 < pair.likeness < 1


def test_pairs_are_one_for_two_families_and_none_within_one() -> None:
    one = told("a", "Please remember my colour is teal.", "Please remember my colour is azure.")
    two = told("b", "Please remember my colour is ochre.", "Please remember my colour is beige.")
    three = told("c", "What time is it?")
    assert nearest_pairs([one]) == []
    found = nearest_pairs([one, two, three])
    assert len(found) <= 3
    assert {found[0].first.family, found[0].second.family} == {"a", "b"}
    assert nearest_pairs([one, two], 0) == []


def test_equal_texts_are_findings_and_no_pair() -> None:
    assert nearest_pairs([told("a", "Which colour?"), told("b", "which  COLOUR?")]) == []


def jaccard(one: str, two: str) -> float:
    first, second = (({t[i : i + 3] for i in range(max(1, len(t) - 2))}) for t in (plain(one), plain(two)))
    return len(first & second) / len(first | second)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("wxyz"), st.text("abc ", min_size=1, max_size=12)), min_size=2, max_size=12
    ),
    st.integers(1, 7),
)
def test_pairs_are_those_of_a_plain_count(texts: list[tuple[str, str]], k: int) -> None:
    stories = [told(family, text) for family, text in texts]
    best: dict[frozenset[str], float] = {}
    for at, (family, text) in enumerate(texts):
        for other, second in texts[:at]:
            if other != family and plain(text) != plain(second) and (near := jaccard(text, second)) > 0:
                both = frozenset((family, other))
                best[both] = max(best.get(both, 0), near)
    found = nearest_pairs(stories, k)
    assert [pair.likeness for pair in found] == [round(n, 4) for n in sorted(best.values(), reverse=True)[:k]]
    for pair in found:
        assert pair.likeness == round(jaccard(pair.first.text, pair.second.text), 4)


def test_five_hundred_stories_are_compared_in_less_than_three_seconds() -> None:
    shipped = [turn.user for story in load_scenarios() for s in story.sessions for turn in s.turns]
    many = [
        told(f"family-{n}", shipped[n % len(shipped)] + f" {n}", f"And {n}? {shipped[-n]}")
        for n in range(500)
    ]
    started = time.process_time()
    assert len(nearest_pairs(many)) == 5
    assert time.process_time() - started < 3


# not asked, asked alone

TELL = {"user": "It is teal.", "expect": {"intent": "remember", "facts": ["teal"]}}


@pytest.mark.parametrize(
    ("turns", "noted"),
    [
        ([TELL], ["teal"]),
        ([TELL, {"user": "?", "expect": {"intent": "recall", "answer": {"states": ["teal"]}}}], []),
        ([{"user": "?", "expect": {"intent": "recall", "answer": {"states": ["teal"]}}}, TELL], ["teal"]),
        ([TELL, {"user": "?", "expect": {"intent": "recall", "answer": {"avoids": ["teal"]}}}], []),
        ([TELL, {"user": "It is ochre.", "expect": {"intent": "update", "facts": ["ochre"],
                                                    "store": {"lacks": ["teal"]}}}], ["ochre"]),
        ([TELL, {"user": "Forget it.", "expect": {"intent": "forget", "facts": ["teal"]}}], []),
        ([{"user": "It is teal."},
          {"user": "?", "expect": {"intent": "recall", "answer": {"states": ["teal"]},
                                   "store": {"holds": ["teal"]}}}], []),
        ([{"user": "It is teal."}], []),
    ],
)  # fmt: skip
def test_facts_to_be_kept_that_nothing_asks_for_are_noted(
    turns: list[dict[str, Any]], noted: list[str]
) -> None:
    found = never_asked([story(*turns)])
    assert [note.message.split("'")[1] for note in found] == noted
    assert {note.rule for note in found} <= {"never-asked"}


def test_a_question_alone_has_nothing_told_before_it() -> None:
    ask = {"user": "Which one?", "filler": 5, "expect": {"intent": "recall", "answer": {"states": ["teal"]}}}
    session = {
        "at": "2026-02-03T09:00:00Z", "user": "ann", "channel": "work", "options": {"num_ctx": 1024},
        "given": [{"text": "It is teal."}], "turns": [TELL, ask],
    }  # fmt: skip
    whole = story(sessions=[session])
    (question,) = asked_alone([whole])
    (alone,) = question.story.sessions
    assert (alone.user, alone.channel, alone.options, alone.given) == ("ann", "work", {"num_ctx": 1024}, [])
    assert alone.at == whole.sessions[0].at
    assert [(turn.user, turn.filler) for turn in alone.turns] == [("Which one?", 0)]
    assert list(question.facts) == ["teal"]


def test_questions_that_a_family_asks_alike_are_put_once() -> None:
    ask = {"user": "Which one?", "expect": {"intent": "recall", "answer": {"states": ["teal"]}}}
    other = ask | {"expect": {"intent": "recall", "answer": {"states": ["ochre"]}}}
    rungs = [story(TELL, ask, scenario=name) for name in ("a", "b")]
    found = asked_alone([*rungs, story(other, scenario="c"), story(ask, scenario="d", family="g")])
    assert [[place.scenario for place in question.places] for question in found] == [["a", "b"], ["c"], ["d"]]


def test_turns_that_ask_for_no_fact_are_not_put() -> None:
    silent = {"user": "Which?", "expect": {"intent": "recall", "answer": {"admits_unknown": True}}}
    assert asked_alone([story(TELL, silent, {"user": "Hm?"})]) == []
