"""Why a verdict came out as it did, one short sentence a stage.

The judge itself is asked again, about one thing at a time: one call, one fact, one part of the answer. So a
sentence says what the rules say, whatever they become.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memeval.evaluation import language
from memeval.evaluation.checks import CallTrace, TurnTrace, Verdict, judge
from memeval.evaluation.evidence import Judged, Kept
from memeval.evaluation.expectation import by_whom, quoted, wanted_calls
from memeval.messages import INTENTS, READS, WRITES, Intent
from memeval.scenarios.schema import Answer, Expect, Fact, Store

_ANY = frozenset(INTENTS)
_NOT_TESTED = "not put to the test: an earlier stage broke"
_REFUSED = {"bad_arguments": "was called wrongly", "timeout": "was not done in time"}


def reasons(
    judged: Judged, expect: Expect | None, facts: Mapping[str, Fact], serves: frozenset[Intent]
) -> dict[str, str]:
    """A sentence for every column of a turn's verdict, by its name; `phantom_save` alone where nothing is
    expected. The arguments are those of `judge`.
    """
    case = _Case(judged, expect or Expect(), facts, serves)
    phantom = {"phantom_save": case.phantom_save()}
    if expect is None:
        return phantom
    return {
        "called": case.called(), "arguments": case.arguments(), "stored": case.stored(),
        "retrieved": case.retrieved(), "answered": case.answered(), "passed": case.passed(),
    } | phantom  # fmt: skip


@dataclass(slots=True)
class _Case:
    """One turn before the judge. The methods named like columns give their sentences."""

    judged: Judged
    expect: Expect
    facts: Mapping[str, Fact]
    serves: frozenset[Intent]
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        self.verdict = self.ask(self.expect)

    def ask(self, expect: Expect, said: Sequence[str] | None = None) -> Verdict:
        """The verdict on another expectation of this turn."""
        judged = self.judged
        before = judged.said_before if said is None else said
        return judge(judged.trace, expect, self.facts, judged.store, self.serves, before)

    def alone(self, call: CallTrace, expect: Expect) -> Verdict:
        """The verdict on one call, made by a design that could do anything."""
        turn = replace(self.judged.trace, calls=[call])
        return judge(turn, expect, self.facts, self.judged.store, _ANY)

    def carries(self, call: CallTrace, *names: str) -> bool | None:
        """Whether a call serves the intent and carries these facts; null where it serves another."""
        verdict = self.alone(call, Expect(intent=self.expect.intent, facts=list(names), required=["called"]))
        return verdict.arguments if verdict.called else None

    def fitting(self) -> list[CallTrace]:
        return [call for call in self.judged.trace.calls if self.carries(call) is not None]

    def forbidden(self) -> list[CallTrace]:
        wanted = Expect(forbid=self.expect.forbid)
        return [call for call in self.judged.trace.calls if self.alone(call, wanted).called is False]

    def missing(self, stage: str) -> str:
        """The values for which a stage is broken; all of them where none breaks it by itself."""
        about = self.expect.model_dump(include={"intent", "required"})
        broken = [
            name for name in self.expect.facts
            if getattr(self.ask(Expect(facts=[name], **about)), stage) is False
        ]  # fmt: skip
        return self.values(broken or self.expect.facts)

    def values(self, names: Iterable[str]) -> str:
        return quoted(self.facts[name] for name in names)

    def called(self) -> str:
        intent, value, calls = self.expect.intent, self.verdict.called, self.judged.trace.calls
        if self.expect.forbid:
            if value is None:
                return "no tool of the design could do what is forbidden"
            return "nothing forbidden was called" if value else _was_forbidden(self.forbidden())
        if value:
            return f"{_names(self.fitting())} was called"
        if value is False:
            instead = f"; {_names(calls)} was" if calls else ""
            return f"no tool that serves {intent} was called{instead}"
        if intent == "none":
            return "no call is asked for"
        if self.ask(self.expect, said=()).called is None:
            return f"no tool of the design serves {intent}"
        return "no call is needed: the answer stands in this conversation"

    def arguments(self) -> str:
        value, names = self.verdict.arguments, self.expect.facts if self.writes else []
        if value is None:
            return self.idle()
        if value:
            fit = [call for call in self.fitting() if self.carries(call, *names)]
            return f"{_names(fit)} {f'carries {self.values(names)}' if names else 'could be run'}"
        run = [call for call in self.fitting() if self.carries(call)]
        if not run:
            call = self.fitting()[-1]
            wrong = _REFUSED.get(call.status, "failed, without an argument")
            return f"{call.name} {wrong}: {_short(call.result.text)}"
        lacks = [(call, [name for name in names if not self.carries(call, name)]) for call in run]
        call, absent = min(lacks, key=lambda item: len(item[1]))
        return f"{call.name} does not carry {self.values(absent)}"

    def stored(self) -> str:
        value, trace = self.verdict.stored, self.judged.trace
        if not self.writes:
            return "nothing is to be written"
        if value is None:
            return self.idle()
        if value:
            return f"what was written names {self.values(self.expect.facts)}"
        if not trace.written:
            wrong = [call.result.text for call in self.fitting() if call.result.is_error]
            return "the call wrote nothing" + (f": {_short(wrong[-1])}" if wrong else "")
        if not any(self.judged.store.get(key) for key in trace.written):
            return "what was written is not in the store any more"
        return f"what was written does not name {self.missing('stored')}"

    def retrieved(self) -> str:
        value = self.verdict.retrieved
        if self.expect.intent not in READS:
            return "nothing is to be looked up"
        if not self.expect.facts:
            return "no particular fact is asked for"
        if value is None:
            return self.idle()
        if value:
            return f"memory showed {self.values(self.expect.facts)}"
        if not self.judged.trace.shown():
            return "memory showed nothing"
        return f"nothing that memory showed names {self.missing('retrieved')}"

    def idle(self) -> str:
        """Why a stage is null that could have been put to the test."""
        return "does not apply" if self.expect.forbid or self.verdict.called is None else _NOT_TESTED

    @property
    def writes(self) -> bool:
        return self.expect.intent in WRITES

    def answered(self) -> str:
        alone = self.ask(Expect(answer=self.expect.answer)).answered
        if alone is None:
            return "nothing is asked of the reply"
        said = self.done() if alone else self.undone()
        return f"{_NOT_TESTED} ({said})" if self.verdict.answered is None else said

    def done(self) -> str:
        """What a reply did that it was to do."""
        asked, reply = self.expect.answer, self.judged.trace.reply or ""
        wanted = list(dict.fromkeys([*asked.states, *asked.confirms]))
        named = [name for name in wanted if not self.breaks(Answer(states=[name]))]
        said = [f"names {self.values(named)}"] if named else []
        said += [f"claims {_claim(reply)}"] if len(named) < len(wanted) else []
        said += [f"does not say {self.values(asked.avoids)}"] if asked.avoids else []
        said += ["says that it does not know"] if asked.admits_unknown else []
        return f"the reply {' and '.join(said)}"

    def undone(self) -> str:
        """What a reply did not do that it was to do, or did that it was not to."""
        if self.judged.trace.reply is None:
            return "there is no reply"
        asked = self.expect.answer
        found = [
            self.unsaid(name, part)
            for part, names in (("confirms", asked.confirms), ("states", asked.states))
            for name in names
            if self.breaks(Answer.model_validate({part: [name]}))
        ]
        said = [
            name for name in asked.avoids
            # where the reply is to admit that it does not know, a value must not even be named
            if self.breaks(Answer(avoids=[name]))
            or (asked.admits_unknown and language.names(self.judged.trace.reply, self.facts[name].values))
        ]  # fmt: skip
        found += [f"says {self.values(said)}, which it is to avoid"] if said else []
        if asked.admits_unknown and self.breaks(Answer(admits_unknown=True)):
            found.append("does not say that it does not know")
        return f"the reply {'; it '.join(dict.fromkeys(found))}"

    def breaks(self, answer: Answer) -> bool:
        return self.ask(Expect(answer=answer)).answered is False

    def unsaid(self, name: str, part: str) -> str:
        """Why a reply does not state or confirm a fact."""
        reply, fact = self.judged.trace.reply or "", self.values([name])
        if language.echoes(reply, self.judged.trace.user):
            return "only repeats the user's words"
        denial = "says that it does not know" if language.admits_unknown(reply) else ""
        denial = denial or ("refuses" if language.refuses(reply) else "")
        if language.names(reply, self.facts[name].values):
            return f"names {fact}, but {denial or 'not as the answer'}"
        if part == "confirms" and _claims(reply):
            return f"claims {_claim(reply)}, but {denial or 'not as the answer'}"
        lacks = "does not name" if part == "states" else "neither claims a save nor names"
        return f"{lacks} {fact}" + (f"; it {denial}" if denial else "")

    def passed(self) -> str:
        verdict, expect = self.verdict, self.expect
        if verdict.passed:
            return "all that counts here holds"
        found = [_was_forbidden(self.forbidden())] if expect.forbid and self.forbidden() else []
        for stage in expect.required:
            reached = verdict[: verdict._fields.index(stage) + 1]
            if False in reached and not reached[-1]:  # broken here, or never reached
                found.append(f"{stage} is required")
        if expect.calls and not self.ask(Expect(calls=expect.calls)).passed:
            made = [" or ".join(call.intents) for call in self.judged.trace.calls if call.intents]
            found.append(f"{wanted_calls(expect.calls)}; made were {', '.join(made) or 'none'}")
        if self.breaks(expect.answer):  # a stage that tells what is wrong with it needs no second telling
            found.append(self.undone() if verdict.answered is None else "the reply is not as it should be")
        return "; ".join([*found, *self.misheld()])

    def misheld(self) -> list[str]:
        """What the store does not hold that it is to hold, or holds that it is to lack."""
        store = self.expect.store
        if store is None:
            return []
        by = by_whom(store)
        parts: dict[str, list[str]] = {"holds": store.holds, "lacks": store.lacks}
        wrong = {
            part: [
                name for name in names
                if not self.ask(
                    Expect(store=Store.model_validate({part: [name], "origin": store.origin}))
                ).passed
            ]
            for part, names in parts.items()
        }  # fmt: skip
        said = [f"no record{by} names {self.values(wrong['holds'])}"] if wrong["holds"] else []
        return said + ([f"a record{by} names {self.values(wrong['lacks'])}"] if wrong["lacks"] else [])

    def phantom_save(self) -> str:
        reply = self.judged.trace.reply
        if reply is None:
            return "there is no reply"
        if not _claims(reply):
            return "the reply claims no save"
        wrote = "but nothing was written by a call" if self.verdict.phantom_save else "and a call did write"
        return f"the reply claims {_claim(reply)}, {wrote}"


def _claims(reply: str) -> bool:
    """Whether a reply claims a save: with nothing written, it would be a phantom save."""
    return bool(judge(TurnTrace(user="", reply=reply), None, {}, Kept(), frozenset()).phantom_save)


def _claim(reply: str) -> str:
    """The sentence of a reply that claims a save."""
    sentences = re.split(r"(?<=[.!?\n])\s+", reply.strip())
    return f"“{_short(next((said for said in sentences if _claims(said)), reply))}”"


def _was_forbidden(calls: Sequence[CallTrace]) -> str:
    return f"{_names(calls)} was called, which is forbidden here"


def _names(calls: Iterable[CallTrace]) -> str:
    return " and ".join(dict.fromkeys(call.name for call in calls))


def _short(text: str, width: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
