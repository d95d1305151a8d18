"""LoCAL2 after seed 000: the four tools it shipped, the one it came down to, and the three tiers of now.

What they prescribe stands in 2.A of the requirements, and all of it is upstream's: names, parameters,
result strings, ids, marks, figures. The descriptions that upstream wrote do not stand there: a tool of the
seed keeps the seed's sentence, the others are ours, as are the system prompt, the rule for entities, the
words of the classification, and the floor of 0.3 for searches. The relay's 0.75 is upstream's, and fits an
embedder whose cosines lie as high as nomic's: with MiniLM the questions of S5 come to 0.4. Upstream also
summed a turn up before storing it; here question and answer are stored as they are, as seed 000 has it.
What the model reads of a tool that is late is the trial's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection
from memeval.designs.formats import fitted, shown_text
from memeval.designs.local2 import (
    NOTE_CONTENT,
    RECALL_QUERY,
    RECALL_TOPIC,
    SAVE_CONTENT,
    SAVE_TOPIC,
    SINGLE,
    _Local2,
)
from memeval.designs.replies import asked_object, lines_of, one_line
from memeval.errors import InputError, TextTooLongError
from memeval.memory.legs import cosines
from memeval.memory.ranking import SimilarityFloor
from memeval.memory.scored import Boosted
from memeval.memory.service import EPISODES
from memeval.messages import Tool, ToolResult
from memeval.records import Hit, Record, Where

ORIGIN = "LoCAL2 upstream, after seed 000"
SAID = SINGLE["as_written"]
NOTHING = "[no relevant memories found]"
INSTRUCTION = "[user instruction]"
PINNED = "[Things to always remember about the user:]"
CAPSULES = "[Relevant prior sessions:]"

SYSTEM_PROMPT = (
    "You are a helpful assistant with a long-term memory that lasts across sessions. You only know what was "
    "said in earlier sessions through your memory. When no tool is needed, answer directly and briefly."
)
NOTE_INSTRUCTION = "Note an instruction of the user about how to work or to answer, for later sessions"
REMEMBER = (
    "Pin a fact about the user that must never be forgotten, because the user asks for it. Pinned facts "
    "stand before you in every conversation."
)
REMEMBER_FACT = "The fact, as one sentence."
REMEMBER_REASON = "Why it is worth keeping."
CLASSIFY = """\
Question: {query}
Answer: {answer}

Classify this exchange: what the user wants in one word, and the names of people, places, products and \
projects in it.
Output as JSON: {{"intent": ..., "entities": [...]}}"""

_OPENING = re.compile(r"(?:\A|[.!?:]\s|\n)\W*\w")
_ENTITY = re.compile(r"(?<!\w)(?:\w*\d\w*|[A-ZÀ-ÖØ-Þ][\w+#-]+(?: [A-ZÀ-ÖØ-Þ][\w+#-]+)*)")


def listed(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """Upstream's list: numbered, a blank line between."""
    return "\n\n".join(f"{n}. {shown_text(hit)}" for n, hit in enumerate(hits, 1))


def marked(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """The same list with a critic's mark over each episode that has one."""
    return "\n\n".join(f"{n}. {_mark(hit.record)}{shown_text(hit)}" for n, hit in enumerate(hits, 1))


def _mark(record: Record) -> str:
    match record.critic:
        case None:
            return ""
        case critic if critic >= 4:
            return f"[GOOD EXAMPLE — rated {critic:g}/5]\n"
        case critic if critic <= 2:
            return f"[AVOID — rated {critic:g}/5 — do not repeat this approach]\n"
        case critic:
            return f"[MIXED — rated {critic:g}/5]\n"


def entities(text: str) -> list[str]:
    """Names in a text by rule: words with a digit, and runs of capitalised words.

    A word that opens a sentence is no name for that; nor is a single sign.
    """
    plain = _OPENING.sub(lambda opening: opening[0].lower(), text)
    return list(dict.fromkeys(name for name in _ENTITY.findall(plain) if len(name) > 1))


def rate(ctx: Context, record_id: str, critic: float) -> bool:
    """Give an episode a critic's mark, 1 to 5, and leave all else of it as it is; False for an unknown id.

    What a story says a session was worth is no such mark (0 to 10, A37), and is never made into one.
    """
    if not 1 <= critic <= 5:
        raise InputError(f"a critic's mark is from 1 to 5, not {critic:g}")
    return ctx.store.patch(record_id, critic=float(critic))


def pinned_id(fact: str) -> str:
    """The id of a pinned fact, from its words: the same fact is kept once."""
    # half a surrogate pair has an id, too: refusing it is the store's
    return f"pinned:{sha256(fact.encode(errors='surrogatepass')).hexdigest()[:16]}"


def _missing(tool: str, what: str) -> ToolResult:
    return ToolResult(text=f"[{tool}: {what} is required]", is_error=True)


class Local2Shipped(_Local2):
    """The four tools as they were shipped: any key is taken, and results are plain values."""

    name = "local2_shipped"
    title = "four tools as shipped"
    origin = ORIGIN
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_turn",
        "topic_prefix": "advise",
        "top_k": 5,
        "min_score": -1.0,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        name: _Local2.choices[name] for name in ("write_path", "topic_prefix")
    }

    def _tools(self) -> Sequence[Tool]:
        return (
            build.tool(
                "save_topic", SAID["save_topic"], {"topic": SAVE_TOPIC, "value": SAVE_CONTENT},
                self._save_topic, required=["topic", "value"], effect="write",
                intents=("remember", "update"), error="[save_topic error: {}]",
            ),
            build.recall_topic_tool(
                "recall_topic", SAID["recall_topic"], topic=RECALL_TOPIC,
                missing="[no memory found for topic: '{topic}']", error="[recall_topic error: {}]",
            ),
            build.search_tool(
                "search_memory", SAID["search_memory"], query=RECALL_QUERY, kinds=EPISODES.kinds,
                top_k=self.settings["top_k"], min_score=self.settings["min_score"], show=listed,
                empty=NOTHING, error="[search_memory error: {}]",
            ),
            build.tool(
                "user_instruction_memory", NOTE_INSTRUCTION, {"note": NOTE_CONTENT}, self._note,
                required=["note"], effect="write", intents=("note", "remember"),
                error="[user_instruction_memory error: {}]",
            ),
        )  # fmt: skip

    def _save_topic(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        for parameter, what in (("topic", "key"), ("value", "value")):
            if not args[parameter].strip():
                return _missing("save_topic", what)
        said = "[saved: '{topic}' = '{content}']"
        return build.write_topic(ctx, args["topic"], args["value"], self._prefixes, said)

    @staticmethod
    def _note(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        note: str = args["note"]
        if not note.strip():
            return _missing("user_instruction_memory", "note")
        fields = {"query": INSTRUCTION, "answer": note}
        record = notes.add(ctx, f"Q: {INSTRUCTION}\nA: {note}", "episodic", fields=fields)
        return ToolResult(text=f"[noted: '{note}']", written=(record.id,))


class Local2Search(_Local2):
    """Every turn is kept by itself, and one tool searches: nothing is left for the model to file."""

    name = "local2_search"
    title = "every turn kept, one search tool"
    origin = ORIGIN
    version: ClassVar[int] = 2
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_turn",
        "entities": "rule",
        "merge": 0.90,
        "top_k": 5,
        "min_score": 0.3,
        "entity_boost": 0.1,
        "critic_weight": 0.05,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "write_path": ("auto_turn", "off", "auto_unread"),
        "entities": ("rule", "model", "off"),
    }

    def system_prompt(self) -> str:
        return SYSTEM_PROMPT

    def _tools(self) -> Sequence[Tool]:
        search = build.tool(
            "search_memory", SAID["search_memory"], {"query": RECALL_QUERY},
            lambda args, ctx: self._search(ctx, args["query"]),
            required=["query"], intents=("search", "recall"), error="[search_memory error: {}]",
        )  # fmt: skip
        return (search,)

    def _search(self, ctx: Context, query: str) -> ToolResult:
        return build.search(
            ctx, query, EPISODES, self._ranker(query, self.settings["min_score"]),
            self.settings["top_k"], show=marked, empty=NOTHING, words=False,
        )  # fmt: skip

    def _ranker(self, query: str, min_score: float) -> Boosted:
        boosts = self.settings["entity_boost"], self.settings["critic_weight"]
        return Boosted(SimilarityFloor(min_score), *boosts, query=query)

    def after_turn(self, ctx: Context) -> None:
        """The turn goes in as in seed 000, is told apart by its entities, and takes its likes' place."""
        super().after_turn(ctx)
        turn = {"query_id": f"{ctx.scope.session}-{ctx.turn}"}
        for episode in ctx.store.find(replace(EPISODES, origin="hook", fields=turn)):
            if fields := self._classified(ctx):
                ctx.store.patch(episode.id, fields=fields)
            self._merge(ctx, episode)

    def _classified(self, ctx: Context) -> dict[str, str]:
        """What is noted of a turn: no field for what is empty."""
        intent, names = "", list[str]()
        match self.settings["entities"]:
            case "rule":
                names = list(dict.fromkeys([*entities(ctx.query), *entities(ctx.answer)]))
            case "model":
                said = self._asked(ctx)
                intent, names = one_line(said.get("intent")), lines_of(said.get("entities"))
        noted = {"intent": intent, "entities": ", ".join(one_line(name.replace(",", " ")) for name in names)}
        return {name: value for name, value in noted.items() if value}

    @staticmethod
    def _asked(ctx: Context) -> Mapping[str, Any]:
        """The model's word on a turn; a failure of it costs the turn no more than these fields."""
        said = asked_object(ctx, CLASSIFY.format(query=ctx.query, answer=ctx.answer))
        ctx.counts["classified"] += 1
        ctx.counts["classified_unreadable"] += not said
        return said

    def _merge(self, ctx: Context, episode: Record) -> None:
        """Delete the ingested turns that a new one nearly repeats, compared as documents, not as a query."""
        if not self.settings["merge"]:
            return
        where = replace(EPISODES, origin="hook", exclude=frozenset({episode.id}))
        embed = ctx.store.embedder.embed
        try:
            near = ctx.store.candidates(episode.text, where, self.settings["top_k"], words=False).records
            vector = embed([episode.text])[0]
        except TextTooLongError:  # kept by passage, it is too long to be compared as a whole
            ctx.counts["merge_too_long"] += 1
            return
        for old in near:
            try:
                likeness = cosines(embed([old.text]), vector)[0]
            except TextTooLongError:  # it alone is left out, the others are compared
                ctx.counts["merge_too_long"] += 1
                continue
            if likeness >= self.settings["merge"]:
                ctx.store.delete(old.id)
                ctx.counts["merged"] += 1


class Local2Tiers(Local2Search):
    """Facts that are always there, past sessions that are put before a turn they fit, and the search."""

    name = "local2_tiers"
    title = "pinned facts, relayed sessions, a search"
    origin = ORIGIN
    defaults: ClassVar[Mapping[str, Any]] = {
        **Local2Search.defaults,
        "relay_min_score": 0.75,
        "relay_cap": 2,
        "relay_third": 0.90,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **Local2Search.choices,
        "write_path": _Local2.choices["write_path"],
    }

    def _tools(self) -> Sequence[Tool]:
        remember = build.tool(
            "remember_this", REMEMBER, {"fact": REMEMBER_FACT, "reason": REMEMBER_REASON}, self._remember,
            required=["fact"], effect="write", intents=("remember", "note"),
            error="[remember_this error: {}]",
        )  # fmt: skip
        return (remember, *super()._tools())

    @staticmethod
    def _remember(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        fact = args["fact"].strip()
        if not fact:
            return _missing("remember_this", "fact")
        reason = args.get("reason") or ""
        fields = {"reason": reason} if reason else {}
        record = notes.add(ctx, fact, "pinned", fields=fields, record_id=pinned_id(fact))
        return ToolResult(text=f"Remembered: {fact}", written=(record.id,))

    def before_turn(self, ctx: Context) -> Injection | None:
        """Everything pinned, and the episodes of earlier sessions that are near enough to the question."""
        pinned = [Hit(record=record, score=1.0) for record in ctx.store.find(Where(kinds=("pinned",)))]
        blocks = ["\n".join([PINNED, *(f"- {hit.record.text}" for hit in pinned)])] if pinned else []
        shown: Sequence[Hit] = ()
        if hits := self._relayed(ctx):
            said, shown = fitted(hits, ctx, marked)
            blocks.append(f"{CAPSULES}\n{said}")
        return Injection("\n\n".join(blocks), (*pinned, *shown)) if blocks else None

    def _relayed(self, ctx: Context) -> list[Hit]:
        """At most `relay_cap` capsules, and one more if it is as near as `relay_third`."""
        current = ctx.store.find(replace(EPISODES, fields={"session_id": ctx.scope.session}))
        where = replace(EPISODES, exclude=frozenset(record.id for record in current))
        cap, ranker = self.settings["relay_cap"], self._ranker(ctx.query, self.settings["relay_min_score"])
        try:
            hits = notes.find(ctx, ctx.query, where, ranker, cap + 1, words=False)
        except (InputError, TextTooLongError):
            ctx.counts["injections_skipped"] += 1
            return []
        third = [hit for hit in hits[cap:] if (hit.cosine or 0.0) >= self.settings["relay_third"]]
        return hits[:cap] + third
