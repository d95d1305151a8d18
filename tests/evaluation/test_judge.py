"""A model's second opinion: asked in one form, read or not, kept, gone on with, counted; no verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from filelock import FileLock
from pandas.testing import assert_frame_equal
from runs import scripted, sweep

import memeval
from memeval.errors import InfrastructureError, InputError, ModelFailureError
from memeval.evaluation.agreement import agreement
from memeval.evaluation.journal import from_line
from memeval.evaluation.judge import JUDGED, PROMPT_VERSION, Judge, judge_run, requirements
from memeval.evaluation.results import ROWS, TRANSCRIPTS, load, read_transcripts
from memeval.messages import Message, Reply
from memeval.models.base import Options
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.scenarios.schema import Answer, Fact

FACTS = {
    "new": Fact(text="The language is Elixir.", values=["Elixir", "elixir-lang", "ex"]),
    "old": Fact(text="The language is Perl.", values=["Perl"]),
}


def says(verdict: str, reason: str = "so it seems") -> Reply:
    return Reply(content=json.dumps({"verdict": verdict, "reason": reason}))


def judging(answer: Callable[[str], Any] | Sequence[Any]) -> ScriptedModel:
    """A judge that answers what is put to it by a function, or by answers taken in turn."""
    script: Any = (lambda messages, tools: answer(messages[-1].content)) if callable(answer) else answer
    return ScriptedModel(script, "scripted:judge")


def replies(request: str) -> tuple[str, str]:
    """What the user said and what was replied, read back from what is put to a judge."""
    said, reply = (json.loads(found) for found in re.findall(r"JSON string: (.*)", request))
    return said, reply


# One reply


def test_a_judge_is_asked_with_a_schema_at_temperature_zero() -> None:
    sent: list[dict[str, Any]] = []

    class Listening(ScriptedModel):
        def chat(self, messages: Sequence[Message], **more: Any) -> Reply:
            sent.append(more)
            return super().chat(messages, **more)

    model = Listening([says("yes", " it says Elixir ")], "scripted:judge")
    given = Judge(model, Options(temperature=0.9, seed=7, num_ctx=2048)).judge(
        "Which one?", 'Elixir, "of course"\n9', ["Give this as the answer: The language is Elixir."]
    )
    assert (given.verdict, given.reason) == (True, "it says Elixir")
    assert (given.model, given.digest, given.prompt_version) == (
        "scripted:judge",
        "scripted:judge",
        PROMPT_VERSION,
    )
    assert (sent[0]["options"].temperature, sent[0]["options"].seed, sent[0]["options"].num_ctx) == (
        0,
        0,
        2048,
    )
    assert sent[0]["schema"]["properties"]["verdict"] == {"enum": ["yes", "no"]}
    assert "tools" not in sent[0]
    ((system, asked), _) = model.seen[0]
    assert (system.role, asked.role) == ("system", "user")
    assert replies(asked.content) == ("Which one?", 'Elixir, "of course"\n9')
    assert "\n1. Give this as the answer: The language is Elixir.\n" in asked.content


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ('{"verdict": "yes", "reason": "r"}', True),
        ('```json\n{"verdict": "no", "reason": "r"}\n```', False),
        ('{"verdict": "no"}', False),
    ],
)
def test_an_answer_in_the_form_asked_for_is_a_verdict(answer: str, verdict: bool) -> None:
    assert Judge(judging([Reply(content=answer)])).judge("?", "!", ["x"]).verdict is verdict


@pytest.mark.parametrize(
    "answer",
    ["Yes, it does.", '{"verdict": "maybe", "reason": "r"}', '{"verdict": "ye', '{"verdict": true}',
     '{"verdict": ["yes"]}', "[]", "null", ""],
)  # fmt: skip
def test_prose_and_broken_json_are_no_verdict_and_say_what_was_answered(answer: str) -> None:
    given = Judge(judging([Reply(content=answer)])).judge("?", "!", ["x"])
    assert given.verdict is None
    assert given.reason == f"the judge gave no verdict: it answered {answer!r}"


def test_a_judge_that_fails_gives_no_verdict_and_a_server_that_fails_stops() -> None:
    model = judging([ModelFailureError("too long", kind="context_overflow"), InfrastructureError("gone")])
    judge = Judge(model)
    given = judge.judge("?", "!", ["x"])
    assert (given.verdict, given.reason) == (None, "the judge gave no verdict: too long")
    with pytest.raises(InfrastructureError, match="gone"):
        judge.judge("?", "!", ["x"])


def test_a_model_without_schemas_cannot_judge() -> None:
    model = judging([])
    model.modes = ("native",)
    with pytest.raises(InputError, match=r"scripted:judge cannot judge: it takes no JSON Schema .*native"):
        Judge(model)


def test_what_a_reply_must_do_is_told_with_the_facts() -> None:
    assert requirements(Answer(), FACTS) == []
    (confirm,) = requirements(Answer(confirms=["new"]), FACTS)
    assert confirm.endswith("refuse nothing: The language is Elixir. (the value: Elixir or elixir-lang)")
    state, avoid = requirements(Answer(states=["new"], avoids=["old"]), FACTS)
    assert state.startswith("Give this as the answer: The language is Elixir.")
    assert avoid.startswith("Not give this as the answer, though it may be told as what held before: The")
    hide, unknown = requirements(Answer(avoids=["old"], admits_unknown=True), FACTS)
    assert hide == "Not mention this: The language is Perl. (the value: Perl)"
    assert unknown == "Say that it does not know, or was not told, what is asked."


# A run


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A run of two stories and two designs: 4 trials, 8 turns with a reply that something is asked of."""
    register_model("scripted:test", lambda: ScriptedModel(scripted))
    memeval.run(sweep(tmp_path, repeats=1), tmp_path / "run")
    return tmp_path / "run"


def kept(folder: Path) -> list[dict[str, Any]]:
    return [row for line in (folder / JUDGED).read_bytes().splitlines() if (row := from_line(line))]


def recall_is_wrong(request: str) -> Reply:
    return says("no", "it is too short") if "prefer?" in replies(request)[0] else says("yes")


def test_every_reply_is_judged_beside_the_rules_and_no_verdict_changes(made: Path) -> None:
    before, rows = load(made), (made / ROWS).read_bytes()
    done: list[tuple[int, int]] = []
    frame = judge_run(made, judging(recall_is_wrong), progress=lambda *at: done.append(at))
    assert (len(frame), frame.attrs) == (8, {"turns": 8, "kept_out": {}, "smoke": True})
    assert (done[0], done[-1], len(done)) == ((0, 8), (8, 8), 9)
    assert set(frame["rules"]) == {True}
    assert frame.groupby("intent")["judge"].sum().to_dict() == {"recall": 0, "remember": 4}
    first = frame[frame["intent"] == "recall"].iloc[0]
    assert (first["question"], first["reply"]) == ("What language do I prefer?", "Elixir.")
    assert first["must"] == ["Give this as the answer: The language is Elixir. (the value: Elixir)"]
    assert (first["judge_reason"], first["rules_reason"]) == ("it is too short", "does all that is asked")
    assert set(frame["trial_key"]) == set(before.trials["trial_key"])
    assert (made / ROWS).read_bytes() == rows
    assert_frame_equal(load(made).trials, before.trials)
    row = kept(made)[0]
    assert (row["judge"], row["judge_digest"], row["prompt_version"]) == (
        "scripted:judge", "scripted:judge", PROMPT_VERSION,
    )  # fmt: skip
    assert row["judged_at"]


def test_the_same_call_goes_on_and_a_finished_one_asks_nothing(made: Path) -> None:
    some = judge_run(made, judging(recall_is_wrong), limit=3)
    assert (len(some), some.attrs["turns"], len(kept(made))) == (3, 8, 3)
    model = judging(recall_is_wrong)
    whole = judge_run(made, model)
    assert (len(whole), len(model.seen), len(kept(made))) == (8, 5, 8)
    again = judging([])
    assert_frame_equal(judge_run(made, again), whole)
    assert again.seen == []
    assert len(judge_run(made, judging([]), limit=0)) == 8


def test_a_judge_stopped_by_its_server_keeps_what_it_said(made: Path) -> None:
    answers = [says("yes"), says("no"), InfrastructureError("nobody answers", kind="server_down")]
    with pytest.raises(
        InfrastructureError, match=r"nobody answers; 2 of 8 turns are judged and kept in .*judged"
    ) as e:
        judge_run(made, judging(answers))
    assert e.value.kind == "server_down"
    with (made / JUDGED).open("ab") as file:
        file.write(b'{"table": "judged", "trial_k')  # and killed amid a write
    assert len(judge_run(made, judging(lambda asked: says("yes")))) == 8
    assert len(kept(made)) == 8
    lines = (made / JUDGED).read_bytes().splitlines(keepends=True)
    (made / JUDGED).write_bytes(b"".join([lines[0].replace(b"yes", b"no!"), b"\x00\n", *lines[2:]]))
    model = judging(lambda asked: says("yes"))
    judge_run(made, model)
    assert 1 <= len(model.seen) <= 2


def test_other_judges_options_and_expectations_are_asked_anew(made: Path, tmp_path: Path) -> None:
    judge_run(made, judging(lambda asked: says("yes")))
    other = ScriptedModel(lambda messages, tools: says("no"), "scripted:other")
    frame = judge_run(made, other)
    assert (len(other.seen), set(frame["judge_model"]), set(frame["judge"])) == (
        8,
        {"scripted:other"},
        {False},
    )
    wider = judging(lambda asked: says("no"))
    assert set(judge_run(made, wider, options=Options(num_ctx=8192, deadline=1.0))["judge"]) == {False}
    assert len(wider.seen) == 8
    patient = judging([])
    assert len(judge_run(made, patient, options=Options(num_ctx=8192, deadline=9.0))) == 8
    path = tmp_path / "stories.yaml"
    path.write_text(path.read_text().replace("states: [language]", "avoids: [language]"))
    fresh = judging(lambda asked: says("no"))
    frame = judge_run(made, fresh)
    assert len(fresh.seen) == 4
    wrong = frame[frame["intent"] == "recall"]
    assert set(wrong["rules"]) == {False}
    assert set(wrong["rules_reason"]) == {"gives 'language', to avoid"}


def test_what_the_rules_miss_is_said(tmp_path: Path) -> None:
    register_model("scripted:test", lambda: ScriptedModel(lambda messages, tools: "I cannot do that."))
    memeval.run(sweep(tmp_path, stories=1, designs=["local2_dual"], repeats=1), tmp_path / "run")
    frame = judge_run(tmp_path / "run", judging(lambda asked: says("yes")))
    assert frame["rules_reason"].tolist() == ["does not confirm 'language'", "does not state 'language'"]
    assert frame["answered"].isna().all()  # the call was missing: the stage was never put to the test
    path = tmp_path / "stories.yaml"
    path.write_text(
        path.read_text().replace("{states: [language]}", "{avoids: [language], admits_unknown: true}")
    )
    frame = judge_run(tmp_path / "run", judging(lambda asked: says("yes")))
    assert frame["rules_reason"].tolist()[1] == "does not admit that it is unknown"


def test_trials_that_cannot_be_judged_are_counted_by_reason(made: Path, tmp_path: Path) -> None:
    lines = (made / TRANSCRIPTS).read_bytes().splitlines(keepends=True)
    (made / TRANSCRIPTS).write_bytes(b"".join(lines[1:]))
    path = tmp_path / "stories.yaml"
    changed = next(iter(read_transcripts(made)))["trial_key"]
    name = load(made).trials.set_index("trial_key")["scenario"][changed]
    one, two = path.read_text().split("---")
    story = one if f"scenario: {name}" in one else two
    path.write_text(path.read_text().replace(story, story.replace("What language", "Which language")))
    frame = judge_run(made, judging(lambda asked: says("yes")))
    assert frame.attrs["kept_out"]["no_evidence"] == 1
    assert frame.attrs["kept_out"]["story_changed"] >= 1
    assert frame["trial_key"].nunique() == 4 - sum(frame.attrs["kept_out"].values())
    path.unlink()
    empty = judge_run(made, judging([]))
    assert (len(empty), empty.attrs["kept_out"]) == (0, {"no_evidence": 1, "story_missing": 3})
    with pytest.raises(InputError, match="the frame has 0 judges"):
        agreement(empty)


def test_a_run_that_is_written_and_a_model_that_cannot_judge_are_refused(made: Path) -> None:
    with FileLock(made / ".lock"), pytest.raises(InputError, match="is being written by another memeval"):
        judge_run(made, judging([]))
    register_model("scripted:native", lambda: _native())
    with pytest.raises(InputError, match="cannot judge"):
        judge_run(made, "scripted:native")
    assert not (made / JUDGED).exists()


def _native() -> ScriptedModel:
    model = judging([])
    model.modes = ("native",)
    return model


def test_a_model_may_be_named_and_is_closed(made: Path) -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        def close(self) -> None:
            closed.append(self.name)

    register_model("scripted:judge", lambda: Closing(lambda messages, tools: says("yes"), "scripted:judge"))
    assert len(judge_run(made, "scripted:judge")) == 8
    assert closed == ["scripted:judge"]


# Agreement


def frame_of(*verdicts: tuple[bool, bool | None]) -> pd.DataFrame:
    rows = [
        {"rules": rules, "judge": judge, "reply": f"reply {n}", "rules_reason": "a", "judge_reason": "b",
         "judge_model": "m", "judge_digest": "0123456789abcdef", "prompt_version": "1"}
        for n, (rules, judge) in enumerate(verdicts)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return frame.assign(rules=frame["rules"].astype("boolean"), judge=frame["judge"].astype("boolean"))


def test_agreement_is_counted_with_kappa_and_disagreements() -> None:
    # Cohen (1960) as worked out by hand: 20, 5, 10, 15 of 50; rate .7, chance .5 * .6 + .5 * .4 = .5
    verdicts: list[tuple[bool, bool | None]] = (
        [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10
    )
    found = agreement(frame_of(*verdicts, *[(False, False)] * 15, (True, None)))
    assert (found.both_yes, found.rules_only, found.judge_only, found.both_no) == (20, 5, 10, 15)
    assert (found.turns, found.rate, len(found.unread)) == (50, 0.7, 1)
    assert found.kappa == pytest.approx(0.4)
    assert [(row["rules"], row["judge"]) for row in found.disagreements] == [(True, False)] * 5 + [
        (False, True)
    ] * 10
    assert found.disagreements[0]["reply"] == "reply 20"
    assert {"rules_reason", "judge_reason"} <= set(found.disagreements[0])
    assert str(found) == (
        "m (0123456789ab, prompt 1) agrees with the rules on 35 of 50 turns (70%), Cohen's kappa 0.40: "
        "both yes 20, both no 15, only the rules yes 5, only the judge yes 10; "
        "no verdict on 1, on neither side"
    )
    assert json.dumps([found.disagreements, found.unread])


@pytest.mark.parametrize(
    ("verdicts", "rate", "kappa"),
    [
        ([(True, True), (False, False)], 1, 1),
        ([(True, False), (False, True)], 0, -1),
        ([(True, True), (False, True)], 0.5, 0),
        ([(True, True)], 1, None),  # both always say yes: chance agrees as well
        ([(True, None)], None, None),
    ],
)
def test_the_ends_of_kappa(verdicts: Any, rate: float | None, kappa: float | None) -> None:
    found = agreement(frame_of(*verdicts))
    assert (found.rate, found.kappa) == (rate, kappa)
    assert ("no verdict on any of 1 turns" in str(found)) == (rate is None)
    assert ("kappa not defined" in str(found)) == (rate == 1 and kappa is None)


def test_two_judges_are_never_mixed() -> None:
    frame = frame_of((True, True), (False, True))
    frame.loc[1, "prompt_version"] = "2"
    with pytest.raises(InputError, match="the frame has 2 judges"):
        agreement(frame)


def test_a_judge_that_answers_prose_is_counted_on_neither_side(made: Path) -> None:
    frame = judge_run(made, judging(lambda asked: Reply(content="Well, that is a good answer.")))
    found = agreement(frame)
    assert str(found) == "scripted:judge (scripted:jud, prompt 1) gave no verdict on any of 8 turns"
    assert found.unread[0]["judge_reason"].endswith("it answered 'Well, that is a good answer.'")
    assert load(made).trials["passed"].all()
