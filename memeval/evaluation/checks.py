"""Verdicts: per turn and stage, what a design and a model did, judged against what the story expects.

The chain of a turn that writes is `called -> arguments -> stored -> answered`, of one that reads
`called -> arguments -> retrieved -> answered`. A stage is null where it does not apply: no tool of the
design serves the intent, or the answer still stands in the conversation (a recall asked in the session
that planted the fact is a control). A stage after a broken one is null too: it was never put to the test.
What counts as retrieved is what the model read: not the rest of a memory that it was shown a passage of, nor
what was cut off.

`passed` needs every `answer`, `store`, `calls` and `forbid` expectation and every required stage. A required
stage, `calls` and a store expectation about the model's own writes do not count where the design has no tool
for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from memeval.evaluation import language
from memeval.evaluation.matcher import calls_match
from memeval.messages import READS, WRITES, Intent, ToolResult
from memeval.records import Hit, Record, Where
from memeval.scenarios.schema import Answer, Expect, Fact, Store

SCORER = "4"
"""Version of these rules; a row judged by an older one can be judged again without a model."""

_ESCAPES = re.compile(r'(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+')
_ACCEPTS: Mapping[Intent, frozenset[Intent]] = {
    "remember": WRITES,
    "note": WRITES,
    "update": WRITES,
    "recall": READS,
    "search": READS,
    "forget": frozenset({"forget"}),
    "compact": frozenset({"compact"}),
    "none": frozenset(),
}


class Held(Protocol):
    """What verdicts ask of a store: any `MemoryStore`, or one read back from a run."""

    def get(self, record_id: str) -> Record | None: ...

    def find(self, where: Where = ..., /) -> list[Record]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrace:
    """One call that was made, and what came of it."""

    name: str
    arguments: Mapping[str, Any]
    intents: tuple[Intent, ...]
    result: ToolResult
    status: str = "ok"


@dataclass(slots=True, kw_only=True)
class TurnTrace:
    """All that happened in one turn. `reply` is None where the model gave none."""

    user: str
    reply: str | None = None
    calls: list[CallTrace] = field(default_factory=list)
    injected: str = ""
    injected_hits: tuple[Hit, ...] = ()

    @property
    def written(self) -> list[str]:
        """Ids that the model's calls wrote in this turn."""
        return [record for call in self.calls if not call.result.is_error for record in call.result.written]

    def shown(self) -> list[str]:
        """What memory put before the model in this turn, as the model read it.

        What has JSON's escapes stands there without them too: JSON has an `n` before a line's first word.
        """
        found = [call.result for call in self.calls if call.result.hits and not call.result.is_error]
        read = [text for text in (self.injected, *(result.text for result in found)) if text]
        return list(dict.fromkeys([*read, *map(_unescaped, read)]))


class Verdict(NamedTuple):
    """Stages of a turn, whether it passed, and whether a save was claimed that did not happen."""

    called: bool | None = None
    arguments: bool | None = None
    stored: bool | None = None
    retrieved: bool | None = None
    answered: bool | None = None
    passed: bool | None = None
    phantom_save: bool | None = None

    @property
    def broken_at(self) -> str:
        """The first broken stage, or nothing."""
        return next((stage for stage in self._fields[:5] if getattr(self, stage) is False), "")


def judge(
    turn: TurnTrace,
    expect: Expect | None,
    facts: Mapping[str, Fact],
    store: Held,
    serves: frozenset[Intent],
    said_before: Sequence[str] = (),
) -> Verdict:
    """The verdict on one turn.

    `serves` are the intents some tool of the design could serve; `said_before` the user's earlier messages
    of the same session.
    """
    phantom = None if turn.reply is None else language.claims_save(turn.reply) and not turn.written
    if expect is None:
        return Verdict(phantom_save=phantom)
    wanted = [facts[name] for name in expect.facts]
    accepted = _ACCEPTS[expect.intent]
    matching = [call for call in turn.calls if accepted.intersection(call.intents)]
    forbidden = [call for call in turn.calls if set(expect.forbid).intersection(call.intents)]
    made = [call.intents for call in turn.calls if call.intents]
    fits = _calls_fit(expect, serves, made)
    reads, writes = bool(accepted & READS), bool(accepted & WRITES)

    called = _called(expect, accepted, serves, matching, forbidden, wanted, reads, said_before)
    arguments = stored = retrieved = None
    if called and matching:
        arguments = _arguments_fit(matching, wanted if writes else [])
        if writes and arguments:
            stored = _stored(turn.written, store, wanted)
    if reads and wanted and (arguments or (turn.injected and not control(wanted, said_before))):
        retrieved = all_named(wanted, turn.shown())

    answer = _answer(turn, expect.answer, facts)
    broken = False in (called, arguments, stored, retrieved) and not retrieved
    answered = None if broken else answer
    stages = Verdict(called, arguments, stored, retrieved, answered)
    required = all(_required_holds(stage, stages) for stage in expect.required)
    kept = _store_holds(expect.store, facts, store, serves)
    passed = answer is not False and kept and required and fits and not forbidden
    return stages._replace(passed=passed, phantom_save=phantom)


def _called(
    expect: Expect, accepted: frozenset[Intent], serves: frozenset[Intent], matching: Sequence[CallTrace],
    forbidden: Sequence[CallTrace], wanted: Sequence[Fact], reads: bool, said_before: Sequence[str],
) -> bool | None:  # fmt: skip
    if expect.forbid:
        return not forbidden if serves.intersection(expect.forbid) else None
    if not accepted or not accepted & serves:
        return None
    if reads and "called" not in expect.required and control(wanted, said_before):
        return None
    return bool(matching)


def _calls_fit(expect: Expect, serves: frozenset[Intent], made: Sequence[tuple[Intent, ...]]) -> bool:
    """Whether the calls are those the story expects; true where the design has no tools for them."""
    if expect.calls is None or not serves.issuperset(expect.calls.intents):
        return True
    return calls_match(made, expect.calls.intents, extra=expect.calls.extra, ordered=expect.calls.ordered)


def control(wanted: Sequence[Fact], said_before: Sequence[str]) -> bool:
    """Whether everything asked for was said in this very conversation."""
    return bool(wanted) and all_named(wanted, said_before)


def _arguments_fit(calls: Iterable[CallTrace], wanted: Sequence[Fact]) -> bool:
    """Whether some call could be run and, for a write, carries every value; a tool may need no argument."""
    return any(
        call.status in ("ok", "tool_error")
        and (call.status == "ok" or any(str(value).strip() for value in call.arguments.values()))
        and all(language.names(_strings(call.arguments), fact.values) for fact in wanted)
        for call in calls
    )


def _stored(written: Sequence[str], store: Held, wanted: Sequence[Fact]) -> bool:
    records = [record for key in written if (record := store.get(key)) is not None]
    return bool(records) and all_named(wanted, [record_text(record) for record in records])


def _answer(turn: TurnTrace, expected: Answer, facts: Mapping[str, Fact]) -> bool | None:
    """Whether the reply does what is asked; null where nothing is asked."""
    if not expected.asks:
        return None
    if turn.reply is None:
        return False
    reply, echo = turn.reply, language.echoes(turn.reply, turn.user)
    confirmed = all(
        not language.refuses(reply)
        and not echo
        and (language.states(reply, facts[name].values) or language.claims_save(reply))
        for name in expected.confirms
    )
    stated = all(not echo and language.states(reply, facts[name].values) for name in expected.states)
    # where nothing is to be known the value may not even be named; elsewhere a stale one may be told as past
    given = language.names if expected.admits_unknown else language.states
    avoided = not any(given(reply, facts[name].values) for name in expected.avoids)
    return (
        confirmed and stated and avoided and (not expected.admits_unknown or language.admits_unknown(reply))
    )


def _required_holds(stage: str, stages: Verdict) -> bool:
    """A required stage holds if it is true, or null with nothing broken before it (it does not apply)."""
    value: bool | None = getattr(stages, stage)
    return value if value is not None else not stages.broken_at


def _store_holds(
    expected: Store | None, facts: Mapping[str, Fact], store: Held, serves: frozenset[Intent]
) -> bool:
    if expected is None or (expected.origin == "tool" and not serves & WRITES):
        return True
    texts = [record_text(record) for record in store.find(Where(origin=expected.origin))]
    held = all_named([facts[name] for name in expected.holds], texts)
    return held and not any(
        language.names(text, facts[name].values) for name in expected.lacks for text in texts
    )


def all_named(wanted: Sequence[Fact], texts: Sequence[str]) -> bool:
    """Whether every fact's value stands in some text."""
    return all(any(language.names(text, fact.values) for text in texts) for fact in wanted)


def record_text(record: Record) -> str:
    """All that a record says: its text and its fields."""
    return " ".join([record.text, *(str(value) for value in record.fields.values())])


def _unescaped(text: str) -> str:
    """A text with JSON's escapes as the signs they stand for; it may be JSON in part, or cut off."""
    return _ESCAPES.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)


def _strings(arguments: Mapping[str, Any]) -> str:
    return " ".join(str(value) for value in arguments.values())
