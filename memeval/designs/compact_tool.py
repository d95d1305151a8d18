"""Compaction at the model's wish, as LangChain's deepagents has it: source 4 of seed 001 (lines 49-52).

deepagents' (2.E of the requirements) are the name `compact_conversation`, that it takes no arguments, the
answer to a call that comes too soon, and the shares of the context: it is compacted unasked at 85 %, the
model may do so from half of that on, and the last 10 % stay as they are. Its other rule, 170,000 tokens and
6 messages, is for a context of unknown size, and `num_ctx` is always known. It saves the full history to a
file that its model can read; here that is a record of kind `archive`, and `read_history`, which reads it in
this session and in later ones, is ours. So are all other words.

The summary stands at the head of the first message that is kept, because some templates refuse two messages
of one role in a row. When the model gives no summary, nothing is taken away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, MemoryDesign
from memeval.designs.window import (
    CHARACTERS_PER_TOKEN,
    about_to_send,
    check_share,
    estimated,
    in_use,
    summarized,
    transcript,
)
from memeval.errors import InputError
from memeval.memory.chunking import passages
from memeval.messages import Message, Tool, ToolResult
from memeval.records import Hit, Record, Where

GATE = 0.5
"""The share of the trigger from which on the model may compact."""
PAGE, LONGEST_PAGE = 0.2, 3500
"""A page of a saved history: a share of the context, and characters, at most."""
SUMMARY_SECONDS = 600.0
"""Time for a tool that asks the model; each request has a deadline of its own."""
ARCHIVE = Where(kinds=("archive",))

SYSTEM_PROMPT = (
    "You are a helpful assistant. The room for a conversation is short. What is not needed any more can be "
    "replaced by a summary with compact_conversation; read_history gives its full text back, in later "
    "sessions too. When no tool is needed, answer directly and briefly."
)
COMPACT = (
    "Replace the older part of this conversation by a short summary, to make room. Call it when one task is "
    "done and a new, unrelated one begins. Do not call it within a task, nor when the user asks on about "
    "what was said. It takes no arguments."
)
READ = (
    "Read the full text of a conversation that was replaced by a summary, in this session or an earlier one. "
    "Call it when a detail is needed that the summary leaves out."
)
READ_ID = "Which history, such as 'history-1'; the newest if left out."
READ_PAGE = "Which page of it; 1 if left out."
TOO_SOON = "Nothing to compact yet — conversation is within the token budget."
NO_HISTORY = "No history has been saved yet."
DONE = "Compacted: {} older messages are a summary now."
FAILED = "no summary could be written, so the conversation stays as it is. Go on, and try again later."
SUMMARY = "The conversation before this message was replaced by a summary.{}\n\n<summary>\n{}\n</summary>"
SAVED = " Its full text is kept as {}."


class CompactTool(MemoryDesign):
    """One tool without arguments puts a summary in place of the older messages; another reads those back.

    `auto` compacts at `trigger`, a share of the context, without being asked; `keep` is the share that stays
    as it is, and always the current turn.
    """

    name = "compact_tool"
    title = "summary of older messages on a call"
    origin = "seed 001, source 4"
    defaults: ClassVar[Mapping[str, Any]] = {"auto": True, "trigger": 0.85, "keep": 0.1}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name in ("trigger", "keep"):
            check_share(name, self.settings[name])

    def system_prompt(self) -> str:
        return SYSTEM_PROMPT

    def tools(self) -> Sequence[Tool]:
        return (
            build.tool(
                "compact_conversation", COMPACT, {}, self._compact,
                effect="write", intents=("compact",), timeout_s=SUMMARY_SECONDS,
            ),
            build.tool(
                "read_history", READ,
                {"history_id": READ_ID, "page": {"type": "integer", "description": READ_PAGE}}, self._read,
                intents=("recall",),
            ),
        )  # fmt: skip

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        """Do what a call left to be done, or compact unasked; a summary that fails leaves all as it is."""
        compacted = None
        if directive:
            compacted = self._compacted(ctx, messages, *json.loads(directive))
        elif self.settings["auto"] and self._fills(ctx, messages, 1.0):
            compacted = self._unasked(ctx, messages)
        about_to_send(ctx, compacted or messages)
        return compacted

    def _compact(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        cut = self._cut(ctx, ctx.messages)
        if cut == 1 or not self._fills(ctx, ctx.messages, GATE):
            return ToolResult(text=TOO_SOON)
        summary = self._summary(ctx, ctx.messages[1:cut])
        if summary is None:
            return build.failed(FAILED)
        return ToolResult(text=DONE.format(cut - 1), directive=json.dumps([cut, summary]))

    def _unasked(self, ctx: Context, messages: Sequence[Message]) -> list[Message] | None:
        cut = self._cut(ctx, messages)
        summary = self._summary(ctx, messages[1:cut]) if cut > 1 else None
        return None if summary is None else self._compacted(ctx, messages, cut, summary)

    def _fills(self, ctx: Context, messages: Sequence[Message], share: float) -> bool:
        """Whether a history takes that share of the trigger, or more."""
        trigger: float = self.settings["trigger"] * ctx.options.num_ctx
        return in_use(ctx, messages, self.tools()) >= share * trigger

    def _cut(self, ctx: Context, messages: Sequence[Message]) -> int:
        """The place of the first message that is kept; 1 where there is nothing before it to summarise.

        A user's message, so that no result is parted from its call: the first from which on the rest fits.
        """
        room = self.settings["keep"] * ctx.options.num_ctx
        asked = [at for at, message in enumerate(messages) if message.role == "user"]
        return next((at for at in asked if estimated(messages[at:]) <= room), asked[-1])

    @staticmethod
    def _summary(ctx: Context, old: Sequence[Message]) -> str | None:
        summary = summarized(ctx, old)
        if summary is None:
            ctx.counts["compactions_failed"] += 1
        return summary

    def _compacted(self, ctx: Context, messages: Sequence[Message], cut: int, summary: str) -> list[Message]:
        ctx.counts["compactions"] += 1
        saved, kept = self._saved(ctx, messages[1:cut]), messages[cut]
        head = SUMMARY.format(SAVED.format(saved) if saved else "", summary)
        return [messages[0], replace(kept, content=f"{head}\n\n{kept.content}"), *messages[cut + 1 :]]

    @staticmethod
    def _saved(ctx: Context, old: Sequence[Message]) -> str:
        """The id under which a history is kept; empty where the store takes none, such as a read-only one.

        A summary of before is part of the history, and names the one that it stands for.
        """
        now, name = ctx.clock(), f"history-{ctx.store.count(ARCHIVE) + 1}"
        record = Record(
            id=name, kind="archive", text=transcript(old), origin="hook", created_at=now, updated_at=now,
            fields={"session": ctx.scope.session}, by_passage=True,
        )  # fmt: skip
        try:
            return ctx.store.put(record)
        except InputError:
            ctx.counts["histories_not_saved"] += 1
            return ""

    @staticmethod
    def _read(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        if wanted := args.get("history_id", "").strip():
            missing = "there is no history {id!r}; leave history_id out to read the newest."
            record = notes.look_up(ctx, wanted, ARCHIVE.kinds, missing)
        elif saved := ctx.store.find(ARCHIVE):
            record = saved[-1]
        else:
            return ToolResult(text=NO_HISTORY)
        room = min(int(PAGE * ctx.options.num_ctx * CHARACTERS_PER_TOKEN), LONGEST_PAGE)
        pages, page = passages(record.text, room, 0), args.get("page", 1)
        if not 1 <= page <= len(pages):
            raise InputError(f"{record.id} has no page {page}; give one from 1 to {len(pages)}.")
        shown = pages[page - 1]
        return ToolResult(
            text=f"{record.id}, page {page} of {len(pages)}:\n{shown}",
            hits=(Hit(record=replace(record, text=shown), score=1.0),),
        )
