"""SynthOrg's third strategy (2.B.6 of the requirements): the model keeps its own memory, in three tiers.

Core memory is put before every message; archival memory is searched; recall memory holds events, read by id.
Names, parameters, limits and the lines of a result are SynthOrg's; descriptions, hints in errors and the
prompt are ours. Kept as `core`, `note` and `episodic`. A search covers archival and recall memory, as there,
or an event could not be found again in a later session. Where SynthOrg would keep a core memory and never
show it, because core memory is over its tokens, the write is refused here, so that core memory is always
all shown.

The write gate (2.B.7) is SynthOrg's for duplicates only: no tool of the six can declare which memory a new
one replaces, so supersession is left out. With the gate on, a changed fact in nearly the same words is taken
for a duplicate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.designs.fence import fenced, injected, tokens
from memeval.designs.formats import shown_text
from memeval.designs.scrub import scrub
from memeval.designs.synthorg import CATEGORIES, KINDS, category, outside
from memeval.errors import InputError
from memeval.memory.ranking import SimilarityFloor
from memeval.messages import Tool, ToolResult
from memeval.records import Hit, Kind, Record, Where

WRITABLE = tuple(name for name in CATEGORIES if name != "working")
"""A working memory is a session's own and is not kept."""
CORE = Where(kinds=("core",))
SAME = 0.8
"""The share of terms, by Dice, from which a text says what another one says."""
_WORD = re.compile(r"\w+")
STOP_WORDS = frozenset(
    _WORD.findall(
        "a an and are as at be by for from has have in is it its of on or s that the this to was were will "
        "with i me my he she his her they them their we our you your"
    )
)

PROMPT = (
    "You are a helpful assistant with a long-term memory that lasts across sessions, and you keep it "
    "yourself. Core memory is always shown to you: put there what matters in every conversation, in few "
    "words. Archival memory is for all else worth keeping, and is only seen when you search it. Recall "
    "memory is for events, read by id. When no memory is needed, answer directly and briefly."
)
CORE_READ = "Read core memory, with the ids of its entries."
CORE_WRITE = "Add an entry to core memory, which is shown to you in every conversation."
CORE_CONTENT = "What to keep in core memory, as one short sentence."
SEARCH = "Search archival memory and recorded events."
QUERY = "What to look for, in plain words."
FILTER = f"Only memories of this category: {', '.join(WRITABLE)}. All if left out."
LIMIT = "How many memories to give, 1 to 50; 10 if left out."
ARCHIVAL_WRITE = "Keep something in archival memory, to be found by a search later."
ARCHIVAL_CONTENT = "What to keep, as a sentence that can be understood on its own."
CATEGORY = f"What kind of memory it is: {', '.join(WRITABLE)}."
RECALL_READ = "Read one memory whole, by its exact id."
MEMORY_ID = "The exact id, as a search or a write gave it."
RECALL_WRITE = "Record an event: something that happened or was done."
EVENT = "What happened, as a sentence that can be understood on its own."
NO_SUCH_ID = "Memory not found: {id!r}. Search archival memory for its id."
CORE_STORED = "Core memory stored (id={id})."
ARCHIVAL_STORED = "Archival memory stored (id={id}, category={category})."
EVENT_STORED = "Episodic memory recorded (id={id})."


def terms(text: str) -> frozenset[str]:
    """The words of a text that say something, in any case."""
    return frozenset(_WORD.findall(text.casefold())) - STOP_WORDS


def dice(left: frozenset[str], right: frozenset[str]) -> float:
    """The share of terms that two texts have in common, 0 to 1; two texts without terms are the same."""
    return 2 * len(left & right) / (len(left) + len(right)) if left or right else 1.0


def duplicate(ctx: Context, content: str, kind: Kind) -> str:
    """The id of the record of this kind that says the same most nearly, if one does; ties by id."""
    said = terms(content)
    known = ctx.store.find(Where(kinds=(kind,)))
    share, nearest = max(((dice(said, terms(record.text)), record.id) for record in known), default=(0.0, ""))
    return nearest if share >= SAME else ""


def named(name: str, among: Sequence[str]) -> str:
    """The category a name means, in any case. Raises InputError."""
    plain = name.strip().lower()
    if plain not in among:
        raise InputError(f"the category {name!r} is none of {', '.join(among)}.")
    return plain


def entry(record: Record) -> str:
    """`[semantic] the text`."""
    return f"[{category(record)}] {record.text}"


def lines(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """A line a hit: `[semantic] (id=note-3f0c9a1b22d4) the text`."""
    return "\n".join(f"[{category(hit.record)}] (id={hit.record.id}) {shown_text(hit)}" for hit in hits)


class SelfEditing(MemoryDesign):
    """Six tools over core, archival and recall memory."""

    name = "self_editing"
    title = "core, archival and recall memory"
    origin = "seed 001, self-editing as built"
    defaults: ClassVar[Mapping[str, Any]] = {
        "core_entries": 20,
        "core_tokens": 1024,
        "min_score": 0.3,
        "write_gate": "off",
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"write_gate": ("off", "on")}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.check_range("core_entries", 1)
        self.check_range("core_tokens", 1)
        self.check_range("min_score", -1, 1)

    def system_prompt(self) -> str:
        return PROMPT

    def tools(self) -> Sequence[Tool]:
        return [
            build.list_tool(
                "core_memory_read", CORE_READ, kinds=("core",), most=self.settings["core_entries"], show=lines
            ),
            build.tool(
                "core_memory_write", CORE_WRITE, {"content": CORE_CONTENT},
                lambda args, ctx: self._keep(ctx, "core", args["content"], "semantic", CORE_STORED),
                required=["content"], effect="write", intents=("remember",),
            ),
            build.tool(
                "archival_memory_search", SEARCH,
                {"query": QUERY, "category": FILTER, "limit": {"type": "integer", "description": LIMIT}},
                self._search, required=["query"], intents=("search", "recall"),
            ),
            build.tool(
                "archival_memory_write", ARCHIVAL_WRITE, {"content": ARCHIVAL_CONTENT, "category": CATEGORY},
                lambda args, ctx: self._keep(
                    ctx, "note", args["content"], named(args["category"], WRITABLE), ARCHIVAL_STORED
                ),
                required=["content", "category"], effect="write", intents=("remember", "note"),
            ),
            build.get_tool(
                "recall_memory_read", RECALL_READ, record_id=MEMORY_ID, kinds=("core", *KINDS),
                found=entry, missing=NO_SUCH_ID,
            ),
            build.tool(
                "recall_memory_write", RECALL_WRITE, {"content": EVENT},
                lambda args, ctx: self._keep(ctx, "episodic", args["content"], "episodic", EVENT_STORED),
                required=["content"], effect="write", intents=("note", "remember"),
            ),
        ]  # fmt: skip

    def before_turn(self, ctx: Context) -> Injection | None:
        """Core memory, oldest first."""
        core = ctx.store.find(CORE, limit=self.settings["core_entries"])
        hits = [Hit(record=record, score=1.0) for record in core]
        return injected(hits, lambda hit: entry(hit.record), self.settings["core_tokens"])

    def _search(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        wanted = [named(args["category"], CATEGORIES)] if args.get("category", "").strip() else []
        where = Where(kinds=KINDS, exclude=outside(ctx, wanted))
        ranker = SimilarityFloor(self.settings["min_score"])
        k = notes.limited(args.get("limit"), 10, 50)
        return build.search(ctx, args["query"], where, ranker, k, show=lines, words=False)

    def _keep(self, ctx: Context, kind: Kind, content: str, label: str, said: str) -> ToolResult:
        content = notes.check_content(scrub(content))
        if self.settings["write_gate"] == "on" and (known := duplicate(ctx, content, kind)):
            ctx.counts["duplicates"] += 1
            return ToolResult(text=f"Already in memory (id={known}); nothing was written.")
        if kind == "core":
            self._check_room(ctx, f"[{label}] {content}")
        record = notes.add(ctx, content, kind, fields={"category": label}, by_passage=True)
        return ToolResult(text=said.format(id=record.id, category=label), written=(record.id,))

    def _check_room(self, ctx: Context, text: str) -> None:
        most, budget = self.settings["core_entries"], self.settings["core_tokens"]
        core = ctx.store.find(CORE)
        if len(core) >= most:
            raise InputError(f"Core memory is full ({most} entries). Keep it in archival memory.")
        used, needed = sum(tokens(fenced(entry(record))) for record in core), tokens(fenced(text))
        if used + needed > budget:
            raise InputError(
                f"Core memory is full ({used} of {budget} tokens, and this needs {needed}). "
                "Say it shorter, or keep it in archival memory."
            )
