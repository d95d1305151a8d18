"""Memex, source 1 of seed 001 (lines 30-35): compress the conversation into indexed blocks, read them back.

The seed names `CompressExperience`, which archives the context and leaves a structured summary with an index
table, and `ReadExperience`, which looks an index up exactly. From the paper's code (2.E of the requirements)
are the schemas, the rule for an index, the result of a read and its error, the refusal of two messages, the
status line, its warning above 0.8, and the three modes. Blocks hold what the model writes; the anchors by
which that code can cut them out of the conversation are left out (A33). All other words are ours.

The seed's 24.2 to 85.6 % success and 43 % less context (line 35) are those of a model trained by
reinforcement learning for these very tools. They must not be expected of a model that only reads about them.

What is left open, as it is here: a block's description is what the summary's line on its index says. The
summary is cut at 300 words between white space, because a server counts whole requests only. For the same
reason working tokens are the whole last request as it counted them (the paper's leave system and task out),
with an estimate of what was said since. The threshold is 0.7 of the context, which leaves room for one more
turn and the call. Summary and table stand at the head of the current message, since some templates refuse
two user messages in a row. Blocks outlast the session: they are the user's, and every turn begins with a
status that lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.designs.compact_tool import ARCHIVE
from memeval.designs.formats import CAP, shortened
from memeval.designs.window import about_to_send, check_share, in_use
from memeval.errors import InputError
from memeval.memory.codec import whole
from memeval.memory.ranking import WeightedFusion
from memeval.messages import Message, Tool, ToolCall, ToolResult
from memeval.records import Hit, Record

INDEX = re.compile(r"[A-Za-z0-9_-]{1,64}")
FEWEST = 2
"""Messages that stay: the system's and the current one."""
WARN = 0.8
LISTED = 20
"""Blocks that a status or a table lists."""
DESCRIPTION = 100
"""Characters of a block's description."""

PROMPT = (
    "You are a helpful assistant with a short working context. [Context Status: working tokens=X, "
    "threshold=Z] says how full it is. When X comes near Z, or when one task is done and another begins, "
    "call CompressExperience: your summary then takes the place of the conversation. Do not call it when the "
    "user asks on about what was said."
)
KEPT: Mapping[str, str] = {
    "lossless": (
        " What you put into db_blocks is kept word for word, for later sessions too; read it with "
        "ReadExperience and its index."
    ),
    "rag": (
        " What you put into db_blocks is kept word for word, for later sessions too; find it with "
        "ReadExperience and a few of its words."
    ),
    "lossy": " Nothing else is kept, so put every name, number and decision that may be needed into it.",
}
DIRECTLY = " When no tool is needed, answer directly and briefly."
COMPRESS = (
    "Replace this conversation by a summary, to make room. Call it when the context status comes near its "
    "threshold, or when one task is done and a new one begins; not within a task."
)
SUMMARY = (
    "One line for each index, '- <db_index> - <what it holds>', then where things stand and what comes next."
)
LOSSY_SUMMARY = "Everything that may be needed: facts, names, numbers, decisions, where things stand."
BLOCKS = "What to keep word for word: exact names, numbers and decisions. At least one block."
DB_INDEX = "A name for the block: 1 to 64 letters, digits, '_' or '-'. An old one's block is replaced."
DB_CONTENT = "The text to keep."
READ: Mapping[str, str] = {
    "lossless": "Read a block that was kept when the conversation was compressed, by its exact index.",
    "rag": "Find the block, of those kept when the conversation was compressed, that fits some words best.",
}
READ_BY: Mapping[str, tuple[str, str]] = {
    "lossless": ("db_index", "The index, exactly as listed."),
    "rag": ("query", "Words that stand in the block."),
}
NOT_ENOUGH = "Not enough messages to compress. Go on with the task."
NO_MATCH = "No block has any of these words."
HEAD = "=== Summary of the conversation so far ===\n[{} messages became this summary.]\n\n{}"
TASK = "=== Current message ===\n{}"


class Memex(MemoryDesign):
    """The model writes summary and blocks itself; the blocks are read back by index.

    `mode` is the paper's ablation: `lossless` reads by exact index, `rag` takes the best block by the words
    of a query (bm25), `lossy` keeps the summary and nothing else. The paper's code archives the messages
    themselves in `rag`; here the blocks are the same, so that the modes differ in the lookup alone.
    `threshold` is a share of the context, `summary_tokens` where a summary is cut.
    """

    name = "memex"
    title = "compress into indexed blocks, read by index"
    origin = "seed 001, source 1"
    defaults: ClassVar[Mapping[str, Any]] = {"mode": "lossless", "threshold": 0.7, "summary_tokens": 300}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"mode": ("lossless", "lossy", "rag")}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        check_share("threshold", self.settings["threshold"])
        self.check_range("summary_tokens", 1)
        self.mode: str = self.settings["mode"]

    def system_prompt(self) -> str:
        return PROMPT + KEPT[self.mode] + DIRECTLY

    def tools(self) -> Sequence[Tool]:
        if self.mode == "lossy":
            return [self._compressing({"summary": LOSSY_SUMMARY})]
        block = build.parameters({"db_index": DB_INDEX, "db_content": DB_CONTENT}, ("db_index", "db_content"))
        blocks = {"type": "array", "description": BLOCKS, "items": block}
        parameter, said = READ_BY[self.mode]
        read = build.tool(
            "ReadExperience", READ[self.mode], {parameter: said},
            self._read if self.mode == "lossless" else self._find,
            required=[parameter], intents=("recall",) if self.mode == "lossless" else ("search", "recall"),
        )  # fmt: skip
        return [self._compressing({"summary": SUMMARY, "db_blocks": blocks}), read]

    def _compressing(self, properties: Mapping[str, str | Mapping[str, Any]]) -> Tool:
        return build.tool(
            "CompressExperience", COMPRESS, properties, self._compress,
            required=list(properties), effect="write", intents=("compact",),
        )  # fmt: skip

    # tools

    def _compress(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        summary = args["summary"].strip()
        if not summary:
            raise InputError("summary is empty; say what the conversation was about and where it stands.")
        if len(_before_the_call(ctx.messages)) <= FEWEST:
            return ToolResult(text=NOT_ENOUGH, is_error=True)
        records = [] if self.mode == "lossy" else self._blocks(args["db_blocks"], summary, ctx)
        for record in records:
            ctx.store.put(record)
        written = tuple(record.id for record in records)
        short = first_words(summary, self.settings["summary_tokens"])
        if short != summary:
            ctx.counts["summaries_cut"] += 1
        said = f" Kept: {', '.join(_index(record) for record in records)}." if records else ""
        return ToolResult(text=f"Compressed.{said}", written=written, directive=short)

    def _blocks(self, blocks: Sequence[Mapping[str, str]], summary: str, ctx: Context) -> list[Record]:
        """The blocks as records, all checked before the first is written."""
        if not blocks:
            raise InputError("db_blocks is empty; give at least one block with db_index and db_content.")
        records: list[Record] = []
        for block in blocks:
            index = block["db_index"].strip()
            if not INDEX.fullmatch(index):
                raise InputError(
                    f"db_index {index[:64]!r} is not valid; use 1 to 64 letters, digits, '_' or '-'."
                )
            if any(index == _index(record) for record in records):
                raise InputError(f"db_index {index!r} stands twice in db_blocks; give each block its own.")
            content = notes.check_content(
                block["db_content"], f"db_content of {index!r} is empty; give the text to keep."
            )
            now = ctx.clock()
            record = Record(
                id=archive_id(index), kind="archive", text=content, origin="tool", created_at=now,
                updated_at=now, fields={"db_index": index, "description": described(summary, index)},
                by_passage=True,
            )  # fmt: skip
            records.append(whole(record))
        return records

    def _read(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        index, record = args["db_index"].strip(), None
        if INDEX.fullmatch(index):  # a block that the story gave has an id of its own
            record = ctx.store.get(archive_id(index)) or ctx.store.get(index)
        if record is None or record.kind != "archive":
            known = self._known(ctx, _index) or "none"
            raise InputError(f"Index {index[:64]!r} not found. Available: {known}")
        return self._retrieved(ctx, Hit(record=record, score=1.0))

    def _find(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        hits = notes.find(ctx, args["query"], ARCHIVE, WeightedFusion(weight=1.0), 1)
        # a record that no word found scores 0 and still is a candidate, by its meaning
        if not hits or hits[0].keyword is None:
            return ToolResult(text=NO_MATCH)
        return self._retrieved(ctx, hits[0])

    def _retrieved(self, ctx: Context, hit: Hit) -> ToolResult:
        """A block as it is shown: with room for the status behind it, as the trial would cut that off."""
        record = hit.record
        head = f"Retrieved [{_index(record)}] ({len(record.text)} chars):\n\n"
        shown = shortened(record.text, CAP - len(head) - len(self._ending(ctx)))
        return ToolResult(text=head + shown, hits=(replace(hit, record=replace(record, text=shown)),))

    # hooks

    def before_turn(self, ctx: Context) -> Injection:
        """The status, with what each index holds."""
        return Injection(self._status(ctx, ctx.messages, self._known(ctx, _pair, "; ")))

    def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        """What a call that ran gives ends with the status."""
        return replace(result, text=result.text + self._ending(ctx))

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        """The summary a call left takes the place of all but the system message and the current one."""
        compressed = self._compressed(ctx, messages, directive) if directive else None
        about_to_send(ctx, compressed or messages)
        return compressed

    def _compressed(self, ctx: Context, messages: Sequence[Message], summary: str) -> list[Message]:
        ctx.counts["compactions"] += 1
        parts = [HEAD.format(len(messages) - FEWEST, summary)]
        if known := self._known(ctx, _pair, "\n- "):
            parts.append(f"Index table:\n- {known}")
        task = TASK.format(ctx.query)
        shorter = [messages[0], Message(role="user", content="\n\n".join([*parts, task]))]
        # the turn's injection tells what was in use before, so the summary brings a status of its own
        said = "\n\n".join([*parts, self._status(ctx, shorter), task])
        return [messages[0], Message(role="user", content=said)]

    def _known(self, ctx: Context, show: Callable[[Record], str], by: str = ", ") -> str:
        """The newest of the user's blocks, oldest first, and how many more there are; empty without any."""
        records = [] if self.mode == "lossy" else ctx.store.find(ARCHIVE)
        more = [f"and {len(records) - LISTED} older"] if len(records) > LISTED else []
        return by.join([*map(show, records[-LISTED:]), *more])

    def _ending(self, ctx: Context) -> str:
        return f"\n\n{self._status(ctx, ctx.messages, self._known(ctx, _index))}"

    def _status(self, ctx: Context, messages: Sequence[Message], known: str = "") -> str:
        used = in_use(ctx, messages, self.tools())
        threshold = int(self.settings["threshold"] * ctx.options.num_ctx)
        lines = [f"[Context Status: working tokens={used}, threshold={threshold}]"]
        if known:
            lines.append(f"[Available indices: {known}]")
        if used > threshold:
            lines.append("[Warning: above the threshold, compress now]")
        elif used > WARN * threshold:
            lines.append("[Warning: near the threshold, consider compressing]")
        return "\n".join(lines)


def archive_id(index: str) -> str:
    """The id of a block's record: the same for the same index, so that writing it again replaces the block.

    The store holds one user's memories, so the index alone is enough.
    """
    return f"archive-{index}"


def first_words(text: str, most: int) -> str:
    """A text up to so many words between white space; that it was cut is said."""
    words = list(re.finditer(r"\S+", text))
    return text if len(words) <= most else f"{text[: words[most - 1].end()]}\n[cut at {most} words]"


def described(summary: str, index: str) -> str:
    """What a summary's line on an index says: `the budget` in `- ctx_1 - the budget`."""
    line = re.search(
        rf"^[^\w\n]*{re.escape(index)}[`'\"\])]*[ \t]*[-–—:=]+>?[ \t]+(\S.*)$", summary, re.MULTILINE
    )
    return line[1].strip()[:DESCRIPTION] if line else ""


def _before_the_call(messages: Sequence[Message]) -> Sequence[Message]:
    """The history without the message that makes the call under way, and what followed it."""
    said = [at for at, message in enumerate(messages) if message.role == "assistant"]
    return messages[: said[-1]] if said else messages


def _index(record: Record) -> str:
    return str(record.fields.get("db_index", record.id))


def _pair(record: Record) -> str:
    return " - ".join(filter(None, [_index(record), str(record.fields.get("description", ""))]))
