"""Accidents drawn per repeat: balanced, the same for all, in keys and rows; and nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
import runs
from click.testing import CliRunner

import memeval
from memeval.cli import cli
from memeval.designs import MemoryDesign, register, save_tool
from memeval.designs.base import served
from memeval.designs.distractors import distractors
from memeval.errors import InputError
from memeval.evaluation import language, plan, sweep
from memeval.evaluation.perturb import ACCIDENTS, EVEN, LEVELS, drawn, reworded
from memeval.evaluation.plan import opened
from memeval.evaluation.results import Run
from memeval.evaluation.sweep import read_sweep
from memeval.messages import Message, Tool, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.scenarios.loader import load_scenarios

STORY = """
scenario: {name}
family: {name}
title: A test story
facts:
  language: {{text: The language is Elixir., values: [Elixir], key: user.language}}
sessions:
  - turns:
      - user: Please remember my preferred language is Elixir.
        {paraphrases}
        expect: {{intent: remember, facts: [language], answer: {{confirms: [language]}}}}
  - turns:
      - user: What language do I prefer?
        expect: {{intent: recall, facts: [language], answer: {{states: [language]}}}}
"""
OTHERS = "paraphrases: [Elixir is the language I prefer. Remember it., Keep Elixir in mind as my language.]"
ALL = list(ACCIDENTS)
# Recorded before there was anything to perturb: variant, repeat, trial key.
KEYS = {
    (): {
        ("local2_dual", 0): "49f87f8f94ce23a1",
        ("local2_dual", 1): "cff14b5a9f8d159b",
        ("none", 0): "2ba40f4b977e6393",
        ("none", 1): "f4b4fa114f51d8c6",
    },
    ("read_only",): {("local2_dual", 0): "0e0276e6110697e7", ("local2_dual", 1): "00ea4526543c9629"},
    ("tool_order", "surfaces"): {
        ("local2_dual [neutral names]", 0): "5abf269a3ef5067e",
        ("local2_dual [neutral names]", 1): "4f6dcef4cd17ab19",
    },
}
CHANGES: dict[str, Any] = {"read_only": True, "tool_order": "as_written", "surfaces": [{"names": "neutral"}]}


def obedient(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
    """Saves and looks up with whatever tools have the right parameters."""
    last = messages[-1]
    if last.role == "tool":
        return "Elixir."
    asks = "What language" in last.content
    wanted = {"topic"} if asks else {"topic", "content"}
    fitting = [tool.name for tool in tools if wanted == set(tool.parameters["properties"]) - {"query"}]
    values = {"topic": "user.language", "content": "Elixir"}
    return ToolCall(fitting[0], {name: values[name] for name in wanted}) if fitting else "I cannot."


@pytest.fixture
def model() -> ScriptedModel:
    scripted = ScriptedModel(obedient)
    register_model("scripted:test", lambda: scripted)
    return scripted


def described(folder: Path, *, stories: int = 1, fixed: int = 0, **more: Any) -> dict[str, Any]:
    """A sweep of all accidents over stories with paraphrases, and `fixed` ones without."""
    given = runs.sweep(folder, perturb=ALL, repeats=8, **more)
    texts = [STORY.format(name=f"told-{n}", paraphrases=OTHERS) for n in range(stories)]
    texts += [STORY.format(name=f"fixed-{n}", paraphrases="") for n in range(fixed)]
    (folder / "stories.yaml").write_text("---".join(texts))
    return given


def run(folder: Path, **more: Any) -> Run:
    return memeval.run(described(folder, **more), folder / "run")


# Draws


@pytest.mark.parametrize("accidents", [c for n in range(1, 5) for c in combinations(ACCIDENTS, n)])
@pytest.mark.parametrize("seed", [0, 7])
def test_levels_and_pairs_of_levels_come_equally_often(accidents: tuple[Any, ...], seed: int) -> None:
    even = EVEN[len(accidents)]
    for repeats in (even, 2 * even, 3 * even, 16):
        rows = [drawn(accidents, seed, repeat) for repeat in range(repeats)]
        for name in accidents:
            assert Counter(row[name] for row in rows) == dict.fromkeys(LEVELS[name], repeats // 2)
        for one, other in combinations(accidents, 2):
            pairs = Counter((row[one], row[other]) for row in rows)
            assert pairs == dict.fromkeys(product(LEVELS[one], LEVELS[other]), repeats // 4)


@pytest.mark.parametrize("accidents", [c for n in (1, 2, 4) for c in combinations(ACCIDENTS, n)])
def test_an_even_number_of_repeats_has_both_levels_equally_often(accidents: tuple[Any, ...]) -> None:
    for repeats in range(2, 20, 2):
        rows = [drawn(accidents, 3, repeat) for repeat in range(repeats)]
        assert all(sum(row[name] == LEVELS[name][1] for row in rows) * 2 == repeats for name in accidents)


def test_eight_repeats_of_four_accidents_are_a_fraction_of_resolution_four() -> None:
    rows = [[drawn(ALL, 0, r)[name] == LEVELS[name][1] for name in ALL] for r in range(8)]
    for three in combinations(range(4), 3):
        assert len({tuple(row[at] for at in three) for row in rows}) == 8
    assert len({tuple(drawn(ALL, 0, repeat).values()) for repeat in range(16)}) == 16


def test_draws_depend_on_the_seed_and_on_no_order_of_writing() -> None:
    assert drawn(ALL[::-1], 5, 3) == drawn(ALL, 5, 3)
    assert len({tuple(tuple(drawn(ALL, seed, r).values()) for r in range(8)) for seed in range(9)}) > 5
    found = [[LEVELS[name].index(level) for name, level in drawn(ALL, 0, r).items()] for r in range(4)]
    # for good: other draws would be other trials of the same cells
    assert found == [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]


# Keys


@pytest.mark.parametrize("changed", KEYS)
def test_without_perturb_trial_keys_are_what_they_always_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: ScriptedModel, changed: tuple[str, ...]
) -> None:
    for module in (plan, sweep):  # a new loop means new keys, which is not what is asked here
        monkeypatch.setattr(module, "LOOP_VERSION", 2)
    more = {name: CHANGES[name] for name in changed} | {
        "designs": ["local2_dual"] if changed else ["none", "local2_dual"]
    }
    found, base = read_sweep(runs.sweep(tmp_path, 1, **more))
    with opened(found, base) as planned:
        keys = {(cell.row.variant, trial.repeat): trial.key for cell, trial in planned.trials()}
    assert keys == KEYS[changed]


def test_every_draw_has_a_key_of_its_own_and_more_repeats_keep_those_there_are(
    tmp_path: Path, model: ScriptedModel
) -> None:
    keys = []
    for repeats in (8, 16):
        found, base = read_sweep({**described(tmp_path), "repeats": repeats})
        with opened(found, base) as planned:
            keys.append({trial.key for _, trial in planned.trials()})
    assert [len(some) for some in keys] == [16, 32]
    assert keys[0] < keys[1]


@pytest.mark.parametrize("accident", ALL)
def test_the_level_of_an_accident_enters_the_key(tmp_path: Path, model: ScriptedModel, accident: str) -> None:
    given = {**described(tmp_path, designs=["local2_dual"]), "perturb": [accident], "repeats": 2}
    found, base = read_sweep(given)
    with opened(found, base) as planned:
        ((cell, _), *_) = planned.trials()
        spec, story, options = cell.spec, cell.planned.scenarios[0], found.model_options()
    assert spec.perturb is not None
    by_level = {}
    for repeat in range(2):
        told = spec.perturb.draw(story, 0, repeat, "as_written")
        by_level[repeat] = (told.scenario.shown(), told.order, told.shown)
        trial = sweep.make_trial(found, spec, "cell", story, repeat, options)
        level = {"order": trial.order, "names": trial.names}.get(accident, getattr(trial, accident))
        assert level == drawn([accident], 0, repeat)[accident]  # type: ignore[list-item]
    assert by_level[0] != by_level[1]


# What is run


def test_all_designs_and_modes_draw_the_same_and_the_rows_say_what(
    tmp_path: Path, model: ScriptedModel
) -> None:
    done = run(tmp_path, stories=2, calling=["native", "constrained"])
    columns = ["order", "perturbed_names", "request", "distractors"]
    for frame in (done.trials, done.turns):
        assert (frame.groupby("repeat")[columns].nunique() == 1).all().all()
        assert (frame.groupby(["cell", "scenario"])[columns].nunique() == 2).all().all()
    native = done.trials["calling"] == "native"  # elsewhere the script sees no tools
    assert done.trials.loc[native, "passed"].all()
    assert set(done.cells["tool_order"]) == {"perturbed"}
    assert [tuple(names) for names in done.cells["perturb"]] == [ACCIDENTS] * 4


def test_the_model_is_shown_what_was_drawn(tmp_path: Path, model: ScriptedModel) -> None:
    done = run(tmp_path, designs=["local2_dual"])
    asked = [(request[-1].content, tools) for request, tools in model.seen if request[-1].role == "user"]
    told = [(words, tools) for words, tools in asked if "Elixir" in words]
    others = {tool.name for tool in distractors()}
    rows = done.trials.sort_values("repeat").to_dict("records")
    for row, (words, tools) in zip(rows, told, strict=True):
        names = [tool.name for tool in tools]
        own = [name for name in names if name not in others]
        neutral = row["perturbed_names"] == "neutral"
        assert set(own) == ({"tool_a", "tool_b"} if neutral else {"memory_recall", "memory_save"})
        assert others & set(names) == (others if row["distractors"] == "some" else set())
        effects = [tool.effect for tool in tools]
        assert effects == sorted(effects, reverse=row["order"] == "write_first")
        assert words.startswith("Please remember") == (row["request"] == "as_written")
    assert sorted(Counter(words for words, _ in told).values()) == [2, 2, 4]


def test_what_cannot_be_perturbed_is_recorded_as_it_is(tmp_path: Path, model: ScriptedModel) -> None:
    done = run(tmp_path, fixed=1, designs=["none", "local2_dual"]).trials
    fixed = done["scenario"] == "fixed-0"
    assert set(done.loc[fixed, "request"]) == {"as_written"}
    assert set(done.loc[~fixed, "request"]) == {"as_written", "paraphrased"}
    assert set(done.loc[done["design"] == "none", "perturbed_names"]) == {"as_written"}
    assert set(done.loc[done["design"] == "none", "distractors"]) == {"none", "some"}


def test_only_what_is_named_varies(tmp_path: Path, model: ScriptedModel) -> None:
    given = {**described(tmp_path), "perturb": ["names"]}
    done = memeval.run(given, tmp_path / "run").trials
    assert set(done["order"]) == {"as_written"}
    assert (set(done["request"]), set(done["distractors"])) == ({"as_written"}, {"none"})
    assert Counter(done["perturbed_names"]) == {"as_written": 8, "neutral": 8}
    del given["repeats"]
    found, base = read_sweep(given)
    assert {cell.repeats for cell in sweep.plan(found, base, "hash")} == {8}


def test_a_part_may_be_perturbed_by_itself(tmp_path: Path, model: ScriptedModel) -> None:
    given = {**described(tmp_path, designs=["local2_dual"]), "parts": [{}, {"perturb": [], "repeats": 2}]}
    done = memeval.run(given, tmp_path / "run")
    assert sorted(len(names) for names in done.cells["perturb"]) == [0, 4]
    plain = done.trials[[not names for names in done.trials["perturb"]]]
    assert list(plain["order"]) == ["read_first", "write_first"]


def test_a_story_in_other_words_keeps_all_but_its_words() -> None:
    (story,) = load_scenarios(["s6-new-session"])
    first, second = (reworded(story, pick) for pick in (0, 1))
    assert first.expected() == second.expected() == story.expected()
    said = [[turn.user for session in told.sessions for turn in session.turns] for told in (first, second)]
    turns = [turn for session in story.sessions for turn in session.turns]
    assert said == [[turn.paraphrases[at] for turn in turns] for at in (0, 1)]
    assert reworded(story, 2).shown() == first.shown()
    assert first.shown() != story.shown()


# Distractors


def test_a_distractor_that_is_called_is_recorded_and_is_no_use_of_memory(tmp_path: Path) -> None:
    def wanders(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        there = "set_timer" in {tool.name for tool in tools}
        if messages[-1].role == "user" and there:
            return ToolCall("set_timer", {"minutes": 5})
        return "Elixir."

    register_model("scripted:test", lambda: ScriptedModel(wanders))
    done = run(tmp_path, designs=["local2_single"])
    assert set(done.calls["name"]) == {"set_timer"}
    assert set(done.calls["status"]) == {"ok"}
    assert set(done.calls["intent"]) == {"none"}
    assert set(done.calls["text"]) == {"The timer is running."}
    crowded = done.turns[done.turns["distractors"] == "some"]
    assert set(crowded["called_tool"]) == {"set_timer"}
    assert set(crowded["called_intent"]) == {"none"}
    assert not crowded["called"].any()
    assert (crowded["wrote"] == 0).all()
    assert done.trials["unknown_tools"].sum() == 0


def test_distractors_serve_no_intent_and_half_of_them_write() -> None:
    tools = distractors()
    assert Counter(tool.effect for tool in tools) == {"read": 2, "write": 2}
    assert [served(tool) for tool in tools] == [[], [], [], []]


def test_a_design_with_a_tool_of_the_same_name_is_refused_before_anything_runs(
    tmp_path: Path, model: ScriptedModel
) -> None:
    class Chatty(MemoryDesign):
        name = "chatty_for_test"

        def tools(self) -> Sequence[Tool]:
            return [save_tool("send_message", "Send a note to yourself.")]

    register(Chatty)
    with pytest.raises(InputError, match="'chatty_for_test' has a tool 'send_message'"):
        run(tmp_path, designs=["chatty_for_test"])
    assert not (tmp_path / "run").exists()


# Files


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tool_order": "read_first"}, "`perturb` draws the order"),
        ({"surfaces": [{"names": "neutral"}]}, "`perturb` draws the names"),
        ({"perturb": ["names"], "tool_order": "balanced"}, "list `order` under `perturb`"),
        ({"perturb": ["wording"]}, "perturb"),
        ({"parts": [{"tool_order": "shuffled"}]}, "`perturb` draws the order"),
    ],
)
def test_what_cannot_go_together_is_refused(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_sweep({**described(tmp_path), **more})


def test_a_dry_run_shows_what_each_repeat_draws(tmp_path: Path, model: ScriptedModel) -> None:
    text = Path(tmp_path / "sweep.yaml")
    given = {**described(tmp_path, fixed=1), "repeats": 6}
    text.write_text("\n".join(f"{key}: {value!r}" for key, value in given.items()))
    said = CliRunner().invoke(cli, ["run", str(text), "--dry-run"], catch_exceptions=False).output
    assert "Perturbed by repeat" in said
    for repeat in range(6):
        row = next(line.split() for line in said.splitlines() if line.split()[:1] == [str(repeat)])
        assert row[1:] == list(drawn(ALL, 0, repeat).values())
    assert "In 6 repeats not all levels meet equally often; in 8 they would." in said
    assert "1 of 2 stories have no paraphrases" in said


def test_the_shipped_sweep_is_balanced_over_stories_that_all_have_paraphrases() -> None:
    found, base = read_sweep("fragility")
    cells = sweep.plan(found, base, "hash")
    assert sum(len(cell.scenarios) * cell.repeats for cell in cells) == 320
    assert {cell.spec.accidents for cell in cells} == {ACCIDENTS}
    assert all(cell.repeats % EVEN[4] == 0 for cell in cells)
    turns = [turn for story in cells[0].scenarios for s in story.sessions for turn in s.turns]
    assert all(turn.paraphrases and turn.user not in turn.paraphrases for turn in turns)


def test_other_words_for_a_request_name_the_same_fact_and_for_a_question_do_not() -> None:
    for story in load_scenarios(["remember/please_remember.yaml"]):
        ((fact,), (told,), (asked,)) = story.facts.values(), *(s.turns for s in story.sessions)
        assert len(told.paraphrases) == len(asked.paraphrases) == 2
        assert all(language.names(text, fact.values) for text in told.paraphrases)
        assert not any(language.names(text, fact.values) for text in asked.paraphrases)
