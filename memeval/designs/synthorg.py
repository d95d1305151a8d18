"""SynthOrg, as seed 001 asks for it and as it was built: three designs over memories with categories.

`synthorg_triad` is the seed's own triad (lines 39 and 47-52), which was never built: names and parameters are
the seed's. `synthorg_tools` and `synthorg_context` are strategies 2 and 1 as SynthOrg has them (2.B of the
requirements): names, parameters, the line of a result, `No memories found.`, the note on categories, the
fence and the beginning of the prompt are theirs. All other words are ours, and so are `save_memory` and the
ingest of turns, which no text names: without them there would be nothing to recall.

A record that names no category is `episodic` if it is an episode, else `semantic`. Before text is stored,
known secrets are taken out; SynthOrg does so with e-mail addresses too, which are left in here, because
stories ask for them. A token is taken as four characters, as SynthOrg estimates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.designs.fence import fenced, injected, tokens
from memeval.designs.formats import NOTHING_FOUND, Format, fitted, shown_text
from memeval.designs.scrub import scrub
from memeval.designs.synthorg_ask import search_and_ask
from memeval.designs.window import summarized
from memeval.errors import InputError, TextTooLongError
from memeval.memory.ranking import Ranker, WeightedFusion
from memeval.memory.scored import MMR, LinearRecency
from memeval.messages import Message, Tool, ToolResult
from memeval.records import Hit, Kind, Record, Where

CATEGORIES = ("working", "episodic", "semantic", "procedural", "social")
KINDS: tuple[Kind, ...] = ("note", "episodic", "topic")
"""What these designs search: what they keep, and whatever a story gives."""
ASKING_SECONDS = 600.0
"""Time for a tool that asks the model; each request has a deadline of its own."""
KEPT_TURNS = 3
FULL = {"agent": 0.95, "auto": 0.8}
"""How full the context may be before it is compacted unasked (2.B.8)."""
SUMMARIZE = "summarize"
MOST_INJECTED = 20
MOST_ASKED, ASKED_CHARACTERS = 10, 500

# Texts; see above for whose they are.

_DIRECTLY = " When no memory is needed, answer directly and briefly."
_SAVING = " Use save_memory to keep what should be known in later sessions."
TRIAD_PROMPT = (
    "You are a helpful assistant with a long-term memory that lasts across sessions. You only know what was "
    "said in earlier sessions through your memory tools. Looking up costs time: do it only for what is not "
    "in this conversation."
)
TOOLS_PROMPT = (
    "You have access to memory recall tools. Use search_memory when the answer may lie in earlier sessions, "
    "which you do not know otherwise. Use recall_memory to read one memory by its id."
)
CONTEXT_PROMPT = (
    "You are a helpful assistant with a long-term memory that lasts across sessions. What it holds about a "
    "message is put before that message."
)
QUERY = "What to look for, in plain words."
RECALL = "Find memories of earlier sessions by their meaning. Enough for most questions about the past."
TOP_K = "How many memories to give, 1 to 20; {} if left out."
HYBRID = (
    "Find memories of earlier sessions by their meaning and by their words together. Use it when "
    "recall_memory did not find enough, or when exact words matter: a name, a number, a code."
)
KEYWORD_WEIGHT = (
    "How much words count against meaning: from 0 (meaning only) to 1 (words only); 0.3 if left out."
)
COMPACT = (
    "Have the older part of this conversation replaced by a summary when the next turn starts. Use it "
    "rarely: when one task is done and another begins, never within a task."
)
COMPACT_SAID = "The older part of this conversation will be summarized when the next turn starts."
TOO_SOON = f"Nothing to summarize yet: the last {KEPT_TURNS} turns always stay as they are."
SUMMARY = "Summary of the earlier conversation:\n{}"
SEARCH = "Search memories of earlier sessions: what was said, decided or learned."
CATEGORY_FILTER = f"Only memories of these categories: {', '.join(CATEGORIES)}. All if left out."
LIMIT = "How many memories to give, 1 to 50; 10 if left out."
BY_ID = "Read one memory whole, by its id."
MEMORY_ID = "The exact id of the memory."
NO_SUCH_ID = "Memory not found: {id!r}. Give the exact id of a memory."
SAVE = "Keep something worth knowing in later sessions."
CONTENT = "What to keep, as one sentence that can be understood on its own."
IGNORED = "(Ignored invalid categories: {})"
NOT_ENOUGH = "(These may not answer the question; another query may find more.)"


def category(record: Record) -> str:
    """The category of a record; one that is no category counts as none."""
    own = str(record.fields.get("category", "")).lower()
    return own if own in CATEGORIES else "episodic" if record.kind == "episodic" else "semantic"


def outside(ctx: Context, categories: Iterable[str]) -> frozenset[str]:
    """The ids of memories of no such category, to be left out before anything is ranked (C7)."""
    kept = frozenset(categories)
    every = ctx.store.find(Where(kinds=KINDS)) if kept else []
    return frozenset(record.id for record in every if category(record) not in kept)


def line(hit: Hit, ids: bool = False) -> str:
    """`[semantic] (relevance: 0.85) the text`. Relevance is the cosine, whatever the order was made of."""
    relevance = hit.score if hit.cosine is None else hit.cosine
    where = f" (id={hit.record.id})" if ids else ""
    return f"[{category(hit.record)}] (relevance: {relevance:.2f}){where} {shown_text(hit)}"


def lines(ids: bool = False) -> Format:
    """A line a hit, or that there is none."""
    return lambda hits, ctx: "\n".join(line(hit, ids) for hit in hits) or NOTHING_FOUND


def listed(hits: Sequence[Hit]) -> str:
    """The first memories found, cut short, for a question about them."""
    return "\n".join(fenced(line(hit)[:ASKED_CHARACTERS]) for hit in hits[:MOST_ASKED]) or NOTHING_FOUND


def _asked(messages: Sequence[Message]) -> list[int]:
    """The places of the user's messages, each of which begins a turn."""
    return [at for at, message in enumerate(messages) if message.role == "user"]


class _SynthOrg(MemoryDesign):
    """What the three share: how memories come in."""

    def after_turn(self, ctx: Context) -> None:
        """The turn goes in as one memory."""
        if self.settings["write_path"] == "auto_turn":
            said = scrub(f"User: {ctx.query}\nAssistant: {ctx.answer}")
            notes.ingest_turn(ctx, said, "note", {"category": "episodic"})

    def _saving(self) -> list[Tool]:
        """A tool to save with, if that is how memories come in."""
        if self.settings["write_path"] != "tool":
            return []

        def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
            content, fields = scrub(args["content"]), {"category": "semantic"}
            record = notes.add(ctx, content, "note", fields=fields, by_passage=True)
            return ToolResult(text="Memory saved.", written=(record.id,))

        return [
            build.tool(
                "save_memory", SAVE, {"content": CONTENT}, run,
                required=["content"], effect="write", intents=("remember", "note"),
            )
        ]  # fmt: skip

    def _prompt(self, text: str) -> str:
        return text + (_SAVING if self.settings["write_path"] == "tool" else "") + _DIRECTLY


class SynthOrgTriad(_SynthOrg):
    """Recall by meaning, search by meaning and word with a weight a call, and a wish to compact.

    `compact` is `agent` (the tool, and unasked at 95 % of the context), `auto` (no tool, at 80 %) or `off`.
    The last 3 turns stay as they are, so that SynthOrg's least of 4 messages needs no check of its own; a
    wish where there are no others yet is told so, and forgotten.
    """

    name = "synthorg_triad"
    title = "recall, search with a word weight, compact"
    origin = "seed 001, the triad"
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_turn",
        "compact": "agent",
        "top_k": 5,
        "min_score": 0.3,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "write_path": ("auto_turn", "tool", "off"),
        "compact": ("agent", "auto", "off"),
    }
    version: ClassVar[int] = 2

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.check_range("top_k", 1, 20)
        self.check_range("min_score", -1, 1)

    def system_prompt(self) -> str:
        return self._prompt(TRIAD_PROMPT)

    def tools(self) -> Sequence[Tool]:
        top_k = self.settings["top_k"]
        recall = build.search_tool(
            "recall_memory", RECALL, query=QUERY, kinds=KINDS, top_k=top_k,
            limit=("top_k", TOP_K.format(top_k)), min_score=self.settings["min_score"], show=lines(),
        )  # fmt: skip
        weight = {"type": "number", "description": KEYWORD_WEIGHT}
        search = build.tool(
            "search_memory", HYBRID, {"query": QUERY, "keyword_weight": weight}, self._search,
            required=["query"], intents=("search", "recall"),
        )  # fmt: skip
        compact = build.tool("compact_context", COMPACT, {}, self._wish, intents=("compact",))
        return [recall, search, *([compact] if self.settings["compact"] == "agent" else []), *self._saving()]

    def _search(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        # No floor: a record that a word found may be far in meaning, and that is what the weight is for.
        ranker = WeightedFusion(weight=args.get("keyword_weight", 0.3))
        hits = notes.find(ctx, args["query"], Where(kinds=KINDS), ranker, self.settings["top_k"])
        # what only a leg without weight found scores 0, and was not found
        return build.answer([hit for hit in hits if hit.score > 0], ctx, show=lines())

    @staticmethod
    def _wish(_args: Mapping[str, Any], ctx: Context) -> ToolResult:
        """A directive, which SynthOrg's tool gives whatever there is; here only where it can be kept."""
        if len(_asked(ctx.messages)) <= KEPT_TURNS:
            return ToolResult(text=TOO_SOON)
        return ToolResult(text=COMPACT_SAID, directive=SUMMARIZE)

    def compact(self, ctx: Context, messages: Sequence[Message], directive: str) -> list[Message] | None:
        """Summarize what is older than the last turns, if the model wished it in an earlier turn or if full.

        It is tried once a turn. Where the model fails to give a summary the history stays as it is.
        """
        if self.settings["compact"] == "off":
            return None
        here = (ctx.scope.session, ctx.turn)
        if directive == SUMMARIZE:
            ctx.state["wished"] = here
        due = self._wished(ctx, here) or self._full(ctx, messages)
        asked = _asked(messages)
        if not due or ctx.state.get("tried") == here or len(asked) <= KEPT_TURNS + 1:
            return None
        ctx.state["tried"] = here
        start = asked[-KEPT_TURNS - 1]  # a user's message, so no result is parted from its call
        summary = summarized(ctx, messages[1:start])
        if summary is None:
            ctx.counts["compactions_failed"] += 1
            return None
        ctx.counts["compactions"] += 1
        return [messages[0], Message(role="system", content=SUMMARY.format(summary)), *messages[start:]]

    @staticmethod
    def _wished(ctx: Context, here: tuple[str, int]) -> bool:
        """Whether a compaction was wished in an earlier turn of this session; a wish is good for one turn."""
        wished = ctx.state.get("wished", here)
        if wished != here:
            del ctx.state["wished"]
        return bool(wished != here and wished[0] == here[0])

    def _full(self, ctx: Context, messages: Sequence[Message]) -> bool:
        """By the server's last count, or by length where that is more: a first request was never counted."""
        said = sum(tokens(message.content) for message in messages)
        used = max(ctx.usage.prompt + ctx.usage.output, said)
        return used >= FULL[self.settings["compact"]] * ctx.options.num_ctx


class SynthOrgTools(_SynthOrg):
    """Search by words of one's own and read by id; on request the search rewrites and checks itself.

    `show_ids: false` leaves the ids out of results, as SynthOrg shipped it: nothing then feeds recall_memory
    (2.B.3). `rewrite` and `sufficiency`, both on, are its Search-and-Ask; the check alone tells the model
    what it found. `ranker` is `linear` or `rrf` (word and meaning alike), `mmr` picks for variety.
    """

    name = "synthorg_tools"
    title = "search by category, recall by id"
    origin = "seed 001, strategy 2 as built"
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_turn",
        "show_ids": True,
        "ranker": "linear",
        "mmr": False,
        "rewrite": "off",
        "sufficiency": "off",
        "rounds": 2,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "write_path": ("auto_turn", "tool", "off"),
        "ranker": ("linear", "rrf"),
        "rewrite": ("off", "on"),
        "sufficiency": ("off", "on"),
        "rounds": (1, 2, 3, 4, 5),
    }
    version: ClassVar[int] = 2

    def system_prompt(self) -> str:
        return self._prompt(TOOLS_PROMPT)

    def tools(self) -> Sequence[Tool]:
        if self.settings["mmr"] and self.settings["ranker"] == "rrf":
            raise InputError(
                "mmr weighs scores of about 0 to 1, and those of rrf end at 0.016; use ranker: linear"
            )
        more = {
            "categories": build.texts(CATEGORY_FILTER),
            "limit": {"type": "integer", "description": LIMIT},
        }
        asks = "on" in (self.settings["rewrite"], self.settings["sufficiency"])
        search = build.tool(
            "search_memory", SEARCH, {"query": QUERY, **more}, self._search,
            required=["query"], intents=("search", "recall"),
            timeout_s=ASKING_SECONDS if asks else build.TIMEOUT,
        )  # fmt: skip
        recall = build.get_tool(
            "recall_memory", BY_ID, record_id=MEMORY_ID, kinds=KINDS, missing=NO_SUCH_ID,
            found=lambda record: f"[{category(record)}] {record.text}",
        )  # fmt: skip
        return [search, recall, *self._saving()]

    def _ranker(self, ctx: Context) -> Ranker:
        ranker = (
            LinearRecency(now=ctx.clock()) if self.settings["ranker"] == "linear" else WeightedFusion(0.5)
        )
        return MMR(ranker) if self.settings["mmr"] else ranker

    def _search(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        limit = notes.limited(args.get("limit"), 10, 50)
        named = {name: name.strip().lower() for name in args.get("categories") or ()}
        ignored = [name for name, plain in named.items() if plain not in CATEGORIES]
        wanted = [plain for plain in named.values() if plain in CATEGORIES]
        where = Where(kinds=KINDS, exclude=outside(ctx, wanted))
        ranker, words = self._ranker(ctx), self.settings["ranker"] == "rrf"
        rewrite, check = (self.settings[name] == "on" for name in ("rewrite", "sufficiency"))
        hits, enough = search_and_ask(
            ctx, args["query"], lambda query: notes.find(ctx, query, where, ranker, limit, words=words),
            listed, limit, rewrite=rewrite, check=check, rounds=self.settings["rounds"],
        )  # fmt: skip
        behind = [NOT_ENOUGH] if not enough and not rewrite else []
        behind += [IGNORED.format(", ".join(ignored))] if ignored else []
        said, shown = fitted(hits, ctx, lines(self.settings["show_ids"]), tail="\n".join(behind))
        return ToolResult(text=said, hits=tuple(shown))


class SynthOrgContext(_SynthOrg):
    """No tools: what memory holds about a message is put before it.

    `fence` marks each memory as untrusted data (A40), `budget` is how many tokens of memory there may be.
    """

    name = "synthorg_context"
    title = "memories put before each message"
    origin = "seed 001, strategy 1"
    defaults: ClassVar[Mapping[str, Any]] = {"write_path": "auto_turn", "fence": True, "budget": 1024}
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {"write_path": ("auto_turn", "off")}

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.check_range("budget", 0)  # of nothing, SynthOrg injects nothing (2.B.11)

    def system_prompt(self) -> str:
        return self._prompt(CONTEXT_PROMPT)

    def before_turn(self, ctx: Context) -> Injection | None:
        """The memories near the message, best first; none for a message that cannot be searched for."""
        ranker = LinearRecency(now=ctx.clock())
        try:
            hits = notes.find(ctx, ctx.query, Where(kinds=KINDS), ranker, MOST_INJECTED, words=False)
        except (InputError, TextTooLongError):
            ctx.counts["injections_skipped"] += 1
            return None
        return injected(hits, line, self.settings["budget"], fence=self.settings["fence"])
