"""A trial told again up to one turn, with one thing put right: what would the model have answered then?

Up to the turn in question the model is not asked: it says what it said in the trial, so memory stands as it
stood (a design's own requests, such as summaries, are asked anew under the trial's seed). Then the turn is
sampled from the live model under a seed of its own. Every substitution touches one place only:

    gold write     a fact that the model did not save is saved, with every tool the design has for it
    gold text      what the model saved in its place is saved as it should read
    forced recall  the turn begins with a look-up by the user's own words
    gold query     the model's own look-ups ask for the fact
    oracle hit     whatever looks into memory in this turn finds the fact, and only that
    in context     the fact stands before the user's question
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, get_args

import numpy as np

from memeval.designs.base import Injection
from memeval.errors import InfrastructureError
from memeval.evaluation import language
from memeval.evaluation.arguments import find_tool, read_arguments
from memeval.evaluation.checks import all_named, record_text
from memeval.evaluation.evidence import read_back
from memeval.evaluation.gold import asked_well, gold_saves, look_up
from memeval.evaluation.trial import Trial, TrialRun
from memeval.memory.base import Candidates, MemoryStore
from memeval.memory.guard import GuardedStore
from memeval.messages import Message, Reply, ToolCall
from memeval.models.base import ChatModel
from memeval.records import EVERYTHING, Kind, Record, Where
from memeval.scenarios.schema import Expect, Fact, Scenario, Session, Turn

Substitution = Literal[
    "control", "gold write", "gold text", "forced recall", "gold query", "oracle hit", "in context"
]
SUBSTITUTIONS: tuple[Substitution, ...] = get_args(Substitution)[1:]
Place = tuple[int, int]
"""Session and turn, counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A turn that asked for facts and did not get them, in a trial that was run."""

    trial: Trial
    at: Place
    planted: Place | None
    """The turn that told the facts, in another session or this one; None where the story gave them."""
    messages: Sequence[Mapping[str, Any]]
    evidence: Sequence[Mapping[str, Any]]

    @property
    def facts(self) -> list[Fact]:
        """What was asked for."""
        story = self.trial.scenario
        expect = _turn(story, self.at).expect
        return [story.facts[name] for name in expect.answer.states] if expect else []


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a turn went this time: whether its answer was right, and what memory showed the model."""

    right: bool
    retrieved: bool
    reply: str
    outcome: str
    reason: str = ""


def applies(found: Break, *, injects: bool) -> dict[Substitution, bool]:
    """Which substitutions could change anything, told from what happened; none of it needs the model.

    `injects` says whether the design itself puts memories before the model.
    """
    judged = {(turn.session, turn.turn): turn for turn in read_back(found.evidence)}
    asked = judged[found.at]
    looked = any(call.intents and {"recall", "search"} & set(call.intents) for call in asked.trace.calls)
    held = _holding(found.facts, asked.store.find(EVERYTHING))
    shown = all_named(found.facts, asked.trace.shown())
    before = judged.get(found.planted) if found.planted else None
    wrote = [r for key in before.trace.written if (r := before.store.get(key))] if before else []
    saved_well = all_named(found.facts, [record_text(record) for record in wrote])
    return {
        "gold write": before is not None and not wrote,
        "gold text": bool(wrote) and not saved_well,
        "forced recall": not looked and bool(held) and not shown,
        "gold query": looked and bool(held) and not shown,
        "oracle hit": (looked or injects) and not shown,
        "in context": True,
    }


def replay(
    found: Break, substitution: Substitution, seed: int, model: ChatModel,
    open_store: Callable[[str], MemoryStore],
) -> Replayed | None:  # fmt: skip
    """Tell a trial again up to the turn that broke, with one thing put right.

    None where the substitution cannot be made with the design's tools (it has none to save or look with).
    """
    again = _Replay(found, substitution, seed, model, open_store)
    result = again.run()
    if again.impossible:
        return None
    turn = result.turns[-1]
    last = result.transcript.evidence[-1] if result.transcript.evidence else {}
    reached = (turn.session, turn.turn) == found.at
    shown = [judged.trace.shown() for judged in read_back(result.transcript.evidence)]
    right = reached and turn.passed is True and result.trial.outcome == "ok"
    reason = result.trial.failure or result.trial.invalid_reason
    return Replayed(
        right, bool(shown) and all_named(found.facts, shown[-1]), last.get("reply") or "",
        result.trial.outcome, reason,
    )  # fmt: skip


class _Replay(TrialRun):
    """The trial's loop with recorded replies up to a turn, and one substitution."""

    def __init__(
        self, found: Break, substitution: Substitution, seed: int, model: ChatModel,
        open_store: Callable[[str], MemoryStore],
    ) -> None:  # fmt: skip
        story = _told_until(found.trial.scenario, found.at)
        super().__init__(replace(found.trial, scenario=story), model, open_store, attempt=1)
        self.found, self.substitution, self.fresh_seed = found, substitution, seed
        self.place: Place = (0, 0)
        self.impossible = False
        self.forced = False
        self.recorded: dict[Place, deque[Reply]] = defaultdict(deque)
        for message in found.messages:
            if message["role"] == "assistant" and not message.get("filler"):
                calls = tuple(ToolCall(c["name"], c["arguments"]) for c in message.get("tool_calls", ()))
                reply = Reply(content=message["content"], tool_calls=calls)
                self.recorded[message["session"], message["turn"]].append(reply)

    @property
    def live(self) -> bool:
        """Whether this is the turn in question."""
        return self.place == self.found.at

    def _turn(self, session: int, number: int, turn: Turn, said: Sequence[str]) -> str:
        self.place = (session, number)
        if self.live:
            self.options = replace(self.options, seed=self.fresh_seed)
            self.ctx.options = self.options
        words = super()._turn(session, number, turn, said)
        if self.place == self.found.planted and self.substitution in ("gold write", "gold text"):
            self._save_gold()
        return words

    def _injection(self) -> Injection | None:
        own = super()._injection()
        if not (self.live and self.substitution == "in context"):
            return own
        known = "\n".join(fact.text for fact in self.found.facts)
        text = f"What is known from earlier conversations:\n{known}"
        return replace(own, text=f"{own.text}\n\n{text}") if own else Injection(text)

    def _ask(self, request: list[Message]) -> Reply:
        if not self.live:
            if not self.recorded[self.place]:
                raise InfrastructureError("the transcript ends before the turn that broke", kind="truncated")
            return self.recorded[self.place].popleft()
        if self.substitution == "forced recall" and not self.forced:
            self.forced = True
            call = look_up(self.tools, self.ctx.query, self.found.facts[0].key)
            self.impossible = call is None
            if call is not None:
                return Reply(content="", tool_calls=(call,))
        reply = super()._ask(request)
        if self.substitution == "gold query" and reply.tool_calls:
            reply = replace(reply, tool_calls=tuple(self._asked_well(call) for call in reply.tool_calls))
        return reply

    def _guarded(self) -> GuardedStore:
        if self.live and self.substitution == "oracle hit":
            oracle = _Oracle(self.store, self.found.facts, self.clock(), self.design.remembers)
            return GuardedStore(oracle, read_only=self.trial.read_only)
        return super()._guarded()

    def _asked_well(self, call: ToolCall) -> ToolCall:
        tool, _ = find_tool(call.name, self.tools)
        if tool is None or tool.effect != "read":
            return call
        held = _holding(self.found.facts, self.store.find(EVERYTHING))
        return asked_well(call, tool, self.found.facts[0], held)

    def _save_gold(self) -> None:
        """Save the facts as they should read, in place of what the model saved in this turn."""
        for key in {key for row in self.note.result.calls if self._here(row) for key in row.written}:
            self.store.delete(key)
        for fact in self.found.facts:
            saved = [self._run_gold(call) for call in gold_saves(self.tools, fact)]
            self.impossible |= not any(saved)

    def _run_gold(self, call: ToolCall) -> bool:
        tool, _ = find_tool(call.name, self.tools)
        if tool is None or read_arguments(call.arguments, tool).error:
            return False
        context, run = replace(self.ctx, store=self._guarded()), tool.run
        result = self._own("a gold write", lambda: run(call.arguments, context))
        return not result.is_error and bool(result.written)

    def _here(self, row: Any) -> bool:
        return (row.session, row.turn) == self.place


class _Oracle:
    """A store in which every look-up finds the facts asked for, and nothing else."""

    def __init__(self, store: MemoryStore, facts: Sequence[Fact], now: datetime, kind: Kind) -> None:
        self._store, self.user, self.embedder = store, store.user, store.embedder
        self._gold = [
            Record(
                id=f"oracle-{number}", kind=kind, text=fact.text, origin="given", created_at=now,
                updated_at=now, fields={"content": fact.text, "topic": fact.key or "user.fact"},
                final_score=10.0,
            )
            for number, fact in enumerate(facts, 1)
        ]  # fmt: skip

    def get(self, record_id: str) -> Record | None:
        first = self._gold[0]
        return replace(first, kind="topic") if record_id.startswith("topic-") else first

    def find(self, where: Where = EVERYTHING, limit: int | None = None) -> list[Record]:
        return [replace(r, kind=where.kinds[0]) if where.kinds else r for r in self._gold][:limit]

    def candidates(
        self, query: str, where: Where = EVERYTHING, k: int = 20, *, words: bool | str = True
    ) -> Candidates:
        records, n = self.find(where), len(self._gold)
        ranks = np.arange(1, n + 1)
        return Candidates(records, np.ones(n), np.full(n, 10.0), ranks, ranks)

    def count(self, where: Where = EVERYTHING) -> int:
        return len(self._gold)

    def snapshot(self) -> tuple[Record, ...]:
        return tuple(self._gold)

    def put(self, record: Record) -> str:
        return self._store.put(record)

    def patch(self, record_id: str, **changes: Any) -> bool:
        return self._store.patch(record_id, **changes)

    def delete(self, record_id: str) -> bool:
        return self._store.delete(record_id)

    def restore(self, snapshot: Sequence[Record]) -> None:
        self._store.restore(snapshot)

    def close(self) -> None:
        """Nothing: the store below is the trial's to close."""


def _told_until(story: Scenario, at: Place) -> Scenario:
    """The story up to a turn, of which only the answer is judged."""
    session, turn = at
    kept: list[Session] = list(story.sessions[:session])
    turns = list(kept[-1].turns[:turn])
    expect = turns[-1].expect or Expect()
    turns[-1] = turns[-1].model_copy(update={"expect": Expect(answer=expect.answer)})
    kept[-1] = kept[-1].model_copy(update={"turns": turns})
    return story.model_copy(update={"sessions": kept})


def _turn(story: Scenario, at: Place) -> Turn:
    return story.sessions[at[0] - 1].turns[at[1] - 1]


def _holding(facts: Sequence[Fact], records: Sequence[Record]) -> list[Record]:
    """The records that name the value of one of the facts."""
    return [r for r in records if any(language.names(record_text(r), fact.values) for fact in facts)]
