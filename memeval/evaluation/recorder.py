"""Writes down what happens in a trial: every message, call, hit and time, as the rows it is kept as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from memeval.designs.base import Asked
from memeval.evaluation.checks import SCORER, Held, TurnTrace, Verdict
from memeval.evaluation.evidence import Ledger, turn_evidence
from memeval.evaluation.rows import STAGES, CallRow, HitRow, Transcript, TrialRow, TurnRow
from memeval.messages import Message, Reply, ToolCall, ToolResult
from memeval.records import Hit

LOADED = 0.3
"""Seconds of loading above which a server loaded a model: a loaded one took Ollama 0.24 some 0.05, a model of
half a billion parameters 1."""


@dataclass(slots=True)
class TrialResult:
    """All rows of one trial, the trial row last, and everything that was said."""

    trial: TrialRow
    turns: list[TurnRow] = field(default_factory=list)
    calls: list[CallRow] = field(default_factory=list)
    hits: list[HitRow] = field(default_factory=list)
    transcript: Transcript = field(default_factory=lambda: Transcript(trial_key=""))


class Recorder:
    """The rows of a trial under way. `trial` and `turn` are the rows being filled."""

    def __init__(self, trial: TrialRow) -> None:
        self.trial = trial
        trial.scorer = SCORER
        trial.started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self.turn = TurnRow(trial_key=trial.trial_key)
        self._ledger = Ledger()
        self.result = TrialResult(
            trial, transcript=Transcript(trial_key=trial.trial_key, attempt=trial.attempt)
        )

    def start_turn(self, session: int, number: int) -> TurnRow:
        """The row of a new turn."""
        self.turn = TurnRow(
            trial_key=self.trial.trial_key, attempt=self.trial.attempt, session=session, turn=number
        )
        self.result.turns.append(self.turn)
        return self.turn

    def reply(self, reply: Reply, seconds: float) -> None:
        """Tokens and time of a model's reply."""
        self.trial.seconds_model += seconds
        self.trial.loads += reply.load_seconds > LOADED
        self.turn.seconds_model = round(self.turn.seconds_model + seconds, 6)
        self.turn.prompt_tokens += reply.usage.prompt
        self.turn.output_tokens += reply.usage.output
        used = reply.usage.prompt + reply.usage.output
        self.trial.peak_context = max(self.trial.peak_context, used)
        self.trial.peak_prompt = max(self.trial.peak_prompt, reply.usage.prompt)

    def call(
        self, call: ToolCall, intent: str, status: str, coerced: bool, result: ToolResult, seconds: float
    ) -> None:
        """A call that was run or refused."""
        row = self.turn
        self._call_row(
            call, intent, status, round=row.rounds, call=row.calls, coerced=coerced,
            written=result.written, text=result.text, seconds=round(seconds, 6),
        )  # fmt: skip
        self.hits(row.calls, result.hits)
        if row.calls == 0:
            row.called_tool, row.called_intent = call.name, intent or "invalid"
        row.calls += 1
        row.wrote += bool(result.written) and not result.is_error
        self.trial.coerced += coerced
        self.trial.unknown_tools += status == "unknown_tool"
        self.trial.bad_arguments += status == "bad_arguments"

    def leak(self, call: ToolCall, intent: str) -> None:
        """A call that arrived as text."""
        self.turn.leaked_call = True
        self.turn.leaked_intent = self.turn.leaked_intent or intent or "invalid"
        self._call_row(call, intent, "leaked", round=self.turn.rounds, call=-1)

    def hits(self, call: int, hits: Sequence[Hit]) -> None:
        """Memories shown to the model by a call, or by injection (call -1)."""
        row = self.turn
        self.result.hits += [
            HitRow(
                trial_key=row.trial_key, attempt=row.attempt, session=row.session, turn=row.turn,
                call=call, rank=rank, record=hit.record.id, kind=hit.record.kind,
                origin=hit.record.origin, score=round(hit.score, 6),
                cosine=_rounded(hit.cosine), keyword=_rounded(hit.keyword),
            )
            for rank, hit in enumerate(hits, 1)
        ]  # fmt: skip

    def said(self, session: int, turn: int, message: Message, **more: Any) -> None:
        """A message of the conversation, for the transcript."""
        line: dict[str, Any] = {
            "session": session, "turn": turn, "role": message.role, "content": message.content,
            "thinking": message.thinking, "tool_name": message.tool_name,
            "tool_calls": [{"name": c.name, "arguments": c.arguments} for c in message.tool_calls],
            **more,
        }  # fmt: skip
        kept = {key: value for key, value in line.items() if value or key == "content"}
        self.result.transcript.messages.append(kept)

    def compacted(self, history: Sequence[Message]) -> None:
        """What the history became, for the transcript."""
        said = "\n".join(f"{message.role}: {message.content}" for message in history[1:])
        self.result.transcript.messages.append(
            {"session": self.turn.session, "turn": self.turn.turn, "role": "compacted", "content": said}
        )

    def asked(self, asked: Asked, counts: Mapping[str, int]) -> None:
        """What the design itself asked of the model, and the figures it counted."""
        row = self.trial
        row.hook_requests, row.hook_tokens = asked.requests, asked.tokens
        row.seconds_hooks = round(asked.seconds, 6)
        row.counts = dict(counts)

    def evidence(self, trace: TurnTrace, user: str, store: Held) -> None:
        """What the turn is judged from."""
        place = {"session": self.turn.session, "turn": self.turn.turn}
        changes = self._ledger.changes(user, store)
        self.result.transcript.evidence.append(place | turn_evidence(trace, user, changes))

    def verdict(self, verdict: Verdict) -> None:
        """What is judged of the turn."""
        for name in Verdict._fields:
            setattr(self.turn, name, getattr(verdict, name))
        self.turn.leaked_call = bool(self.turn.leaked_call)

    def finish(self, seconds: float) -> TrialResult:
        """Sum the turns up. A trial that stopped early has failed; an invalid one has no verdict."""
        row, turns = self.trial, self.result.turns
        for count in ("calls", "rounds", "prompt_tokens", "output_tokens"):
            setattr(row, count, sum(getattr(turn, count) for turn in turns))
        row.seconds_harness = round(seconds - row.seconds_model - row.seconds_hooks, 6)
        row.seconds_model = round(row.seconds_model, 6)
        row.seconds_after_turn = round(row.seconds_after_turn, 6)
        if row.outcome == "invalid":
            return self.result
        leaked = [turn.leaked_call for turn in turns if turn.leaked_call is not None]
        row.leaked_call = any(leaked) if leaked else None
        row.leaked_intent = next((turn.leaked_intent for turn in turns if turn.leaked_intent), "")
        fold(row, turns)
        return self.result

    def _call_row(self, made: ToolCall, intent: str, status: str, **more: Any) -> None:
        row = self.turn
        self.result.calls.append(
            CallRow(
                trial_key=row.trial_key, attempt=row.attempt, session=row.session, turn=row.turn,
                name=made.name, arguments=made.arguments, intent=intent, status=status, **more,
            )
        )  # fmt: skip


def fold(trial: TrialRow, turns: Sequence[TurnRow]) -> None:
    """Put the verdicts of its turns together as those of a trial; one whose model failed has not passed."""
    for column in (*STAGES, "passed", "phantom_save"):
        seen = [value for turn in turns if (value := getattr(turn, column)) is not None]
        together = any if column == "phantom_save" else all
        setattr(trial, column, together(seen) if seen else None)
    broken = ((turn, stage) for turn in turns for stage in STAGES if getattr(turn, stage) is False)
    trial.broken_at = next((f"s{turn.session}t{turn.turn} {stage}" for turn, stage in broken), "")
    if trial.outcome == "model_failure":
        trial.passed = False


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
