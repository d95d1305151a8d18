"""The trial: the only agent loop there is. One story, one design, one model, one fresh memory.

Per session the conversation starts anew; per turn the design prepares, the model is asked, the tools it
calls are run, up to five rounds, and the design closes the turn. An unknown tool or a bad argument is
answered with an error the model can act on, counted, and the trial goes on.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from memeval.designs.base import Asked, Context, Injection, MemoryDesign, save_tool
from memeval.designs.formats import CAP
from memeval.designs.notes import clean_tags
from memeval.errors import (
    HarnessError,
    InfrastructureError,
    InputError,
    MemevalError,
    ModelFailureError,
    ReadOnlyError,
    TextTooLongError,
)
from memeval.evaluation.arguments import find_tool, read_arguments, unknown_tool
from memeval.evaluation.checks import CallTrace, TurnTrace, judge
from memeval.evaluation.recorder import Recorder, TrialResult
from memeval.evaluation.rows import TrialRow
from memeval.evaluation.timelimit import TimeLimitError, within
from memeval.memory.base import MemoryStore
from memeval.memory.guard import GuardedStore
from memeval.memory.service import MemoryService
from memeval.messages import Intent, Message, Reply, Tool, ToolCall, ToolResult
from memeval.models.base import CallingMode, ChatModel, Options
from memeval.models.calling import ask
from memeval.owncode import own_code
from memeval.records import Record, Scope, SeededIds, StoryClock, topic_id
from memeval.scenarios.filler import small_talk
from memeval.scenarios.schema import SAVE_TOOL, Given, Scenario, Session, Turn

T = TypeVar("T")

LOOP_VERSION = 2
MAX_ROUNDS = 5
SAME_CALL = 3
"""A round of calls made this often in one turn is an endless loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is to be run: the unit that is stored and resumed. `key` hashes all that its result depends on."""

    key: str
    cell: str
    scenario: Scenario
    design: Callable[[], MemoryDesign]
    calling: CallingMode
    options: Options
    order: str = "as_written"
    names: str = "as_written"
    """This and the next two say how `scenario` and `design` were perturbed, for the record."""
    request: str = "as_written"
    distractors: str = "none"
    repeat: int = 0
    seed: int = 0
    read_only: bool = False


def order_tools(tools: Sequence[Tool], order: str, seed: int) -> list[Tool]:
    """The tools in the order a repeat lists them; within reads and writes, as the design wrote them."""
    match order:
        case "read_first":
            return sorted(tools, key=lambda tool: tool.effect != "read")
        case "write_first":
            return sorted(tools, key=lambda tool: tool.effect == "read")
        case "shuffled":
            return random.Random(seed).sample(list(tools), len(tools))
    return list(tools)


def run_trial(
    trial: Trial, model: ChatModel, open_store: Callable[[str], MemoryStore], attempt: int = 1
) -> TrialResult:
    """Run one trial. Infrastructure trouble makes it `invalid`; a bug in a person's code is raised.

    `open_store(user)` gives the fresh store of one of the story's users, the same one when asked again.
    """
    return TrialRun(trial, model, open_store, attempt).run()


class TrialRun:
    """One trial under way. A replay tells it again with one step changed (`evaluation/replay.py`)."""

    def __init__(
        self, trial: Trial, model: ChatModel, open_store: Callable[[str], MemoryStore], attempt: int
    ) -> None:
        story = trial.scenario
        self.trial, self.model, self.open_store = trial, model, open_store
        self.row = TrialRow(
            trial_key=trial.key, attempt=attempt, cell=trial.cell, scenario=story.scenario,
            family=story.family, split=story.split, tags=tuple(story.tags), repeat=trial.repeat,
            seed=trial.seed, order=trial.order, perturbed_names=trial.names, request=trial.request,
            distractors=trial.distractors, loop_version=LOOP_VERSION,
        )  # fmt: skip
        self.note = Recorder(self.row)
        self.clock = StoryClock(story.sessions[0].at)
        self.ids = SeededIds(trial.seed)
        self.state: dict[str, Any] = {}
        self.asked = Asked()
        self.counts: Counter[str] = Counter()

    def run(self) -> TrialResult:
        started = time.perf_counter()
        try:
            self.design = self._own("making the design", self.trial.design)
            written = self._own("tools", lambda: list(self.design.tools()))
            self.hooks = frozenset(self.design.hooks())
            self.tools = order_tools(written, self.trial.order, self.trial.seed)
            self.save_tool = self._own("tools", lambda: save_tool(written))
            self.serves = self._own("serves", self.design.serves)
            self.prompt = self._own("system_prompt", self.design.system_prompt)
            for number, session in enumerate(self.trial.scenario.sessions, 1):
                self._session(number, session)
        except ModelFailureError as error:
            self.row.outcome, self.row.failure = "model_failure", f"{error.kind}: {error}"
        except InfrastructureError as error:
            self.row.outcome, self.row.invalid_reason = "invalid", f"{error.kind}: {error}"
        self.note.asked(self.asked, self.counts)
        return self.note.finish(time.perf_counter() - started)

    def _session(self, number: int, session: Session) -> None:
        """A conversation that starts with nothing but what memory kept."""
        self.clock.set(session.at)
        self.store = self.open_store(session.user)
        for given in session.given:
            self.store.put(self._record(given))
        self.options = replace(self.trial.options, seed=self.trial.seed, **session.options)
        self.filled = 0
        self.ctx = Context(
            scope=Scope(session.user, f"session-{number}", session.channel), store=self._guarded(),
            clock=self.clock, ids=self.ids, model=self.model, options=self.options, asked=self.asked,
            counts=self.counts, final_score=session.final_score, state=self.state,
        )  # fmt: skip
        self.history = [Message(role="system", content=self.prompt)]
        self.note.said(number, 0, self.history[0])
        said: list[str] = []
        for turn_number, turn in enumerate(session.turns, 1):
            said.append(self._turn(number, turn_number, turn, said))
        self._hook("after_session", lambda: self.design.after_session(self.ctx))

    def _fill(self, session: int, number: int, exchanges: int) -> None:
        """Small talk in the history that no model was asked for."""
        for asked, answered in small_talk(exchanges, self.filled):
            for message in (Message(role="user", content=asked), Message(role="assistant", content=answered)):
                self.history.append(message)
                self.note.said(session, number, message, filler=True)
        self.filled += exchanges

    def _turn(self, session: int, number: int, turn: Turn, said: Sequence[str]) -> str:
        """One turn; gives the user's words as they were said."""
        ctx, trace = self.ctx, TurnTrace(user=turn.user.replace(SAVE_TOOL, self.save_tool))
        self._fill(session, number, turn.filler)
        row = self.note.start_turn(session, number)
        row.expecting(turn)
        row.perturbed_names, row.request = self.row.perturbed_names, self.row.request
        row.distractors = self.row.distractors
        ctx.query, ctx.answer, ctx.calls, ctx.turn, ctx.messages = trace.user, "", (), number, self.history
        injection = self._injection()
        if injection is not None:
            trace.injected, trace.injected_hits = injection.text, injection.hits
            self.note.hits(-1, injection.hits)
        self.history.append(Message(role="user", content=trace.user))
        self.note.said(session, number, self.history[-1], injected=trace.injected)
        try:
            trace.reply = self._rounds(trace, injection)
        finally:
            facts = self.trial.scenario.facts
            self.note.evidence(trace, ctx.scope.user, self.store)
            self.note.verdict(judge(trace, turn.expect, facts, self.store, self.serves, said))
        ctx.answer = trace.reply
        self._after_turn()
        return trace.user

    def _after_turn(self) -> None:
        """Let the design close the turn: nobody waits for that, so its time is on record by itself (A14)."""
        if "after_turn" not in self.hooks:
            return
        started = time.perf_counter()
        try:
            self._hook("after_turn", lambda: self.design.after_turn(self.ctx))
        finally:
            self.row.seconds_after_turn += time.perf_counter() - started

    def _injection(self) -> Injection | None:
        """What the design puts before the model for this turn."""
        return self._hook("before_turn", lambda: self.design.before_turn(self.ctx))

    def _rounds(self, trace: TurnTrace, injection: Injection | None) -> str:
        """Ask, run what is called, ask again; the reply that calls nothing ends the turn."""
        row, directive = self.note.turn, ""
        seen: dict[str, int] = {}
        while True:
            reply = self._ask(self._request(injection, directive))
            directive = ""
            for call in reply.leaked:
                self._leak(call)
            message = Message(
                role="assistant", content=reply.content, thinking=reply.thinking, tool_calls=reply.tool_calls
            )
            self.history.append(message)
            usage = [reply.usage.prompt, reply.usage.output]
            self.note.said(row.session, row.turn, message, usage=usage)
            if reply.done_reason == "length":
                raise ModelFailureError(
                    f"the reply did not end within {self.options.num_predict} tokens", kind="runaway_length"
                )
            if not reply.tool_calls:
                return reply.content
            row.rounds += 1
            same = json.dumps([[c.name, c.arguments] for c in reply.tool_calls], sort_keys=True, default=str)
            seen[same] = seen.get(same, 0) + 1
            if row.rounds > MAX_ROUNDS or seen[same] >= SAME_CALL:
                names = ", ".join(call.name for call in reply.tool_calls)
                raise ModelFailureError(f"still calling {names} in round {row.rounds}", kind="loop")
            for call in reply.tool_calls:
                result = self._call(trace, call)
                directive = result.directive or directive
                answer = Message(role="tool", content=result.text, tool_name=call.name, call_id=call.id)
                self.history.append(answer)
                self.note.said(row.session, row.turn, answer)

    def _request(self, injection: Injection | None, directive: str) -> list[Message]:
        """The messages to send: the history, compacted if the design says so, with this turn's injection."""
        compacted = self._hook("compact", lambda: self.design.compact(self.ctx, self.history, directive))
        if compacted is not None:
            self.history[:] = compacted
            self.note.compacted(compacted)
        request = list(self.history)
        if injection is not None:
            asked = max((at for at, message in enumerate(request) if message.role == "user"), default=None)
            if asked is not None:
                text = f"{injection.text}\n\n{request[asked].content}"
                request[asked] = replace(request[asked], content=text)
        return request

    def _ask(self, request: list[Message]) -> Reply:
        started = time.perf_counter()
        try:
            reply = ask(self.model, self.trial.calling, request, self.tools, self.options)
        except MemevalError:
            self.row.seconds_model += time.perf_counter() - started
            raise
        # what the client waited, where the adapter measured it, so that none of it counts as the harness's
        self.note.reply(reply, reply.seconds or time.perf_counter() - started)
        self.ctx.usage = reply.usage
        return reply

    def _call(self, trace: TurnTrace, call: ToolCall) -> ToolResult:
        """Run one call, or answer it with what is wrong with it."""
        started = time.perf_counter()
        tool, coerced = find_tool(call.name, self.tools)
        intents: tuple[Intent, ...] = ()
        values: Mapping[str, Any] = {}
        intent, understood = "", call
        if tool is None:
            status, result = "unknown_tool", _error(unknown_tool(call.name, self.tools))
        else:
            arguments = read_arguments(call.arguments, tool)
            coerced |= arguments.coerced
            values = arguments.values
            understood = replace(call, name=tool.name, arguments=values)
            intents = self._intents(tool, values)
            if arguments.error:
                status, result = "bad_arguments", _error(arguments.error)
            else:
                status, result = self._execute(tool, values, understood)
                intent = "none"  # a tool that has nothing to do with memory
            intent = intents[0] if intents else intent
        result = replace(result, text=_capped(result.text))
        made = CallTrace(name=call.name, arguments=values, intents=intents, result=result, status=status)
        trace.calls.append(made)
        self.note.call(call, intent, status, coerced, result, time.perf_counter() - started)
        self.ctx.calls = [*self.ctx.calls, understood]  # hooks need not read what the model wrote
        return result

    def _execute(self, tool: Tool, values: Mapping[str, Any], call: ToolCall) -> tuple[str, ToolResult]:
        """Run a tool within its time. One that is late is answered for, and its store taken away."""
        store = self._guarded()
        ctx = replace(self.ctx, store=store)

        def work() -> ToolResult:
            try:
                return tool.run(values, ctx)
            except (TextTooLongError, InputError) as error:  # such as half a surrogate pair in the text
                return _error(f"Error: {error}")

        what = f"tool {tool.name!r}"
        try:
            result: object = within(tool.timeout_s, lambda: self._own(what, work))
        except TimeLimitError:
            late = f"{tool.name} did not answer within {tool.timeout_s:g} s"
            if self.asked.busy or not store.revoke():
                # the tool waits for a server; what is late is the server, and no design's or model's doing
                raise InfrastructureError(
                    f"{late}: the store, its embedder or the model was still at work", kind="slow_store"
                ) from None
            return "timeout", _error(f"Error: {late}.")
        if not isinstance(result, ToolResult):
            kind = type(result).__name__
            raise HarnessError(f"{self._place(what)} gave {kind}; it must give a ToolResult")
        given = result
        changed = self._hook("on_result", lambda: self.design.on_result(self.ctx, call, given), given)
        final = given if changed is None else changed
        return "tool_error" if final.is_error else "ok", final

    def _guarded(self) -> GuardedStore:
        return GuardedStore(self.store, read_only=self.trial.read_only)

    def _intents(self, tool: Tool, values: Mapping[str, Any]) -> tuple[Intent, ...]:
        return self._own(f"intents of {tool.name!r}", lambda: tool.intents(values))

    def _leak(self, call: ToolCall) -> None:
        tool, _ = find_tool(call.name, self.tools)
        raw = call.arguments if isinstance(call.arguments, Mapping) else {}
        intents = self._intents(tool, raw) if tool else ()
        self.note.leak(call, intents[0] if intents else "none" if tool else "")

    def _record(self, given: Given) -> Record:
        """What the story gives, with key and tags as tools write and look them up."""
        now, key = self.clock(), MemoryService.key(given.key)
        fields = {"content": given.text} | ({"topic": key} if key else {})
        kind = given.kind or ("topic" if key and self.design.keeps_topics() else self.design.remembers)
        try:
            tags = clean_tags(given.tags)
        except InputError as error:
            raise InputError(
                f"scenario {self.trial.scenario.scenario!r}, given {given.text[:40]!r}: {error}"
            ) from None
        return Record(
            id=topic_id(key) if key and kind == "topic" else self.ids("given"),
            kind=kind,
            text=given.text, origin="given", created_at=now, updated_at=now,
            tags=tags, fields=fields | given.fields, final_score=given.final_score,
            critic=given.critic, rating=given.rating, by_passage=True,
        )  # fmt: skip

    # a person's own code

    def _hook(self, name: str, work: Callable[[], T], before: object = None) -> T | None:
        """A hook of the design, if it has one. It fired if it gave something new, wrote, asked or counted."""
        if name not in self.hooks:
            return None
        self.ctx.store = store = self._guarded()
        earlier = self._traces(name)
        done = None
        with suppress(ReadOnlyError):  # a hook that writes goes on without where nothing may be written
            done = self._own(name, work)
        new = done is not None and done is not before
        if new or store.writes or earlier != self._traces(name):
            self.row.hooks[name] = self.row.hooks.get(name, 0) + 1
        return done

    def _traces(self, hook: str) -> tuple[Any, ...]:
        """What a hook leaves behind besides writes: requests and counts.

        One that closes a turn or a session may also just note something down, so there the size of what its
        state holds tells; the others note all sorts of things while they do nothing.
        """
        closes = self.state.items() if hook.startswith("after_") else ()
        held = [(key, len(value) if isinstance(value, Sized) else value) for key, value in closes]
        return self.asked.requests, self.counts.total(), held

    def _own(self, what: str, work: Callable[[], T]) -> T:
        """Run code of the design; what it raises is a bug of its author's, named with its place."""
        with own_code(self._place(what)):
            return work()

    def _place(self, what: str) -> str:
        name = self.design.name if hasattr(self, "design") else ""
        story = self.trial.scenario.scenario
        return f"design {name!r}, {what}, in scenario {story!r} (cell {self.trial.cell})"


def _error(text: str) -> ToolResult:
    return ToolResult(text=text, is_error=True)


def _capped(text: str) -> str:
    if len(text) <= CAP:
        return text
    return f"{text[:CAP]}\n({len(text) - CAP} more characters left out)"
