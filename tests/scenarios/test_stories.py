"""The stories that come with memeval."""

from collections import Counter
from typing import get_args

from memeval.scenarios.lint import SAVES, lint
from memeval.scenarios.loader import load_scenarios
from memeval.scenarios.schema import Scenario, Strength
from memeval.shipped import shipped

STORIES = {story.scenario: story for story in load_scenarios()}


def test_no_shipped_story_has_a_finding() -> None:
    assert [str(finding) for finding in lint(list(STORIES.values()))] == []


def test_every_file_points_editors_at_the_schema() -> None:
    for story in STORIES.values():
        assert story.source is not None
        assert story.source.read_text().startswith("# yaml-language-server: $schema=../schema.json\n")
        assert (story.source.parent / "../schema.json").is_file()


def test_s5_is_as_its_author_wrote_it() -> None:
    said, asked = STORIES["s5-australian-geography"].sessions
    assert [turn.user for turn in said.turns] == ["The capital of Australia is Canberra, not Sydney."]
    assert said.turns[0].expect is None
    assert [turn.user for turn in asked.turns] == ["What do you remember about Australian geography?"]
    expect = asked.turns[0].expect
    assert expect is not None
    assert expect.required == ["called"]
    (fact,) = expect.answer.states
    assert STORIES["s5-australian-geography"].facts[fact].values == ["Canberra"]


def test_s6_is_as_its_author_wrote_it_once_in_one_session_and_once_in_two() -> None:
    one, two = STORIES["s6-preferred-language"], STORIES["s6-new-session"]
    users = ["Please remember my preferred language is Elixir.", "What language do I prefer?"]
    assert [[turn.user for turn in session.turns] for session in one.sessions] == [users]
    assert [[turn.user for turn in session.turns] for session in two.sessions] == [[user] for user in users]
    told, asked = [turn.expect for session in two.sessions for turn in session.turns]
    assert told is not None
    assert asked is not None
    assert (told.intent, told.required, told.answer.confirms) == ("remember", ["called"], ["language"])
    assert (asked.intent, asked.answer.states) == ("recall", ["language"])
    assert one.facts == two.facts
    assert [turn.expect for turn in one.sessions[0].turns] == [told, asked]


def test_every_folder_holds_what_people_ask_of_a_memory() -> None:
    sizes = Counter(story.source.parent.name for story in STORIES.values() if story.source)
    least = {"acceptance": 20, "remember": 16 + 144 + 24, "recall": 15, "maintain": 15, "restraint": 15,
             "safety": 15, "multi": 15, "compaction": 8}  # fmt: skip
    assert {folder: sizes[folder] for folder in least if sizes[folder] < least[folder]} == {}


def test_the_ladder_has_six_rungs_for_every_fact_and_the_same_question() -> None:
    ladder = load_scenarios(["tag:ladder"])
    families: dict[str, list[Scenario]] = {}
    for story in ladder:
        families.setdefault(story.family, []).append(story)
    assert len(families) >= 24
    for rungs in families.values():
        told = [turn for story in rungs for session in story.sessions for turn in session.turns]
        asked = [turn.strength for turn in told if turn.strength]
        assert sorted(asked) == sorted(get_args(Strength))
        questions = {story.sessions[-1].turns[-1].user for story in rungs}
        facts = {str(story.facts) for story in rungs}
        assert (len(questions), len(facts)) == (1, 1)


def test_no_two_requests_of_the_ladder_open_alike() -> None:
    asked = [t.user for story in load_scenarios(["tag:ladder"]) for s in story.sessions for t in s.turns
             if t.strength]  # fmt: skip
    openings = Counter(" ".join(text.lower().split()[:4]) for text in asked)
    assert openings.most_common(1)[0][1] <= 2


def test_both_halves_of_the_corpus_are_of_a_size() -> None:
    families = {story.family: story.split for story in STORIES.values()}
    assert 0.4 < Counter(families.values())["test"] / len(families) < 0.6


def test_sixteen_requests_are_saved_and_asked_for_in_a_new_session() -> None:
    stories = load_scenarios(["remember/please_remember.yaml"])
    kinds = Counter(tag for story in stories for tag in story.tags if tag != "remember")
    assert kinds.total() == len(stories) == 16
    assert set(kinds) == {"preference", "rule", "date", "name", "number", "project-fact"}
    for story in stories:
        told, asked = [turn.expect for session in story.sessions for turn in session.turns]
        (fact,) = story.facts
        assert told is not None
        assert asked is not None
        assert (told.intent, told.required, told.answer.confirms) == ("remember", [], [fact])
        assert told.store is not None
        assert (told.store.holds, told.store.origin) == ([fact], "tool")
        assert (asked.intent, asked.answer.states) == ("recall", [fact])
        assert story.facts[fact].key.startswith(("user.", "project.", "constraint."))


def test_eight_decoys_forbid_every_save() -> None:
    stories = load_scenarios(["tag:decoy"])
    assert len(stories) == 8
    for story in stories:
        (session,) = story.sessions
        (turn,) = session.turns
        assert turn.expect is not None
        assert set(turn.expect.forbid) == SAVES
        assert turn.expect.intent in ("none", "recall")


def test_openings_of_the_requests_differ() -> None:
    stories = load_scenarios(["remember/please_remember.yaml"])
    openings = [tuple(story.sessions[0].turns[0].user.split()[:3]) for story in stories]
    assert len(set(openings)) == len(openings)


def test_the_scenarios_folder_is_found() -> None:
    assert (shipped("scenarios") / "acceptance").is_dir()
