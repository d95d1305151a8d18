"""LoCAL2, as seed 000 describes it: two tools, one of them dual-mode, and its revision with four.

Names, parameters, descriptions and result formats are the seed's, word for word where it prescribes them
(lines of `000`: table of the four tools 75-79, output formats 170-183, memory_recall 187-211, memory_save
223-246). What the seed leaves open is ours: the system prompt, one for both designs, and the
descriptions of the parameters of the four tools, taken from the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, MemoryDesign
from memeval.errors import InputError
from memeval.memory.ranking import SimilarityFloor
from memeval.messages import Intent, Tool, ToolResult
from memeval.records import Hit, Kind, Scalar, Where

PREFIXES = ("user.", "project.", "constraint.")
FOUND = "[Memory: {topic}]\n{content}"

SYSTEM_PROMPT = (
    "You are a helpful assistant with a long-term memory that lasts across sessions. You only know what was "
    "said in earlier sessions through your memory tools. Topic keys start with user., project. or "
    "constraint. When no tool is needed, answer directly and briefly."
)

RECALL = (
    "Retrieve from memory. Two modes: (1) topic lookup — pass topic key to retrieve a stored preference, "
    "constraint, or project fact (e.g. topic='user.language_preference'); (2) similarity search — pass query "
    "string to search prior Q&A history for relevant past context. Use topic lookup when you know the key; "
    "use query search when looking for prior conversation context."
)
RECALL_TOPIC = "Topic key for exact lookup (e.g. 'user.name', 'project.deadline')."
RECALL_QUERY = "Free-text query for similarity search over past Q&A history."
SAVE = (
    "Save a preference, constraint, or project fact to memory under a topic key for exact retrieval later. "
    "Use topic prefixes: user.* for user preferences and personal facts, project.* for project decisions and "
    "metadata, constraint.* for things to avoid or enforce. Example: memory_save(topic='user.name', "
    "content='Richard'). Overwrites any previous value for the same topic key."
)
SAVE_TOPIC = "Topic key (e.g. 'user.name', 'project.deadline')."
SAVE_CONTENT = "The value to store."
NOTE_CONTENT = "What to note, as one sentence."

SINGLE: Mapping[str, Mapping[str, str]] = {
    "as_written": {
        "save_topic": "User asks to remember a preference, rule, or fact permanently across sessions",
        "recall_topic": "Look up a specific standing fact by key the agent knows or can infer",
        "save_memory": "Explicitly note something important mid-conversation (agent-initiated)",
        "search_memory": "Recall something from past sessions when no exact key is known — search by meaning",
    },
    # As many words as the two tools have, made of their own sentences, so that a difference between the
    # designs is not a difference in how much was said. The word counts are held by a test.
    "length_matched": {
        "save_topic": (
            "User asks to remember a preference, rule, or fact permanently across sessions. Use topic "
            "prefixes: user.* for user preferences and personal facts, project.* for project decisions and "
            "metadata, constraint.* for things to avoid or enforce. Example: save_topic(topic='user.name', "
            "content='Richard'). Overwrites any previous value for the same topic key."
        ),
        "recall_topic": (
            "Look up a specific standing fact by key the agent knows or can infer (e.g. "
            "topic='user.language_preference'). Use when you know the key."
        ),
        "save_memory": (
            "Explicitly note something important mid-conversation (agent-initiated), for retrieval later."
        ),
        "search_memory": (
            "Recall something from past sessions when no exact key is known — search by meaning. Pass query "
            "string to search prior Q&A history for relevant past context."
        ),
    },
}


def show_episodes(hits: Sequence[Hit], ctx: Context) -> str:
    """The seed's episodic format: a dated header, then each hit with its day, question and answer (A9)."""
    lines = [f"[Memory recall — {ctx.clock():%Y-%m-%d}]"]
    for number, hit in enumerate(hits, 1):
        fields, day = hit.record.fields, f"{hit.record.created_at:%Y-%m-%d}"
        lines += ["", f"{number}. (relevance: {hit.score:.2f}) {day}"]
        if "query" in fields and "answer" in fields:
            lines += [f"   Q: {fields['query']}", f"   A: {fields['answer']}"]
        else:
            lines.append(f"   {hit.record.text}")
    return "\n".join(lines)


class _Local2(MemoryDesign):
    """What both designs share: the prompt, the settings, and the ingest of every turn.

    `write_path: auto_unread` ingests only turns in which no tool that reads was called, so that an answer
    made of a memory is not kept as another one (A13).
    """

    remembers: ClassVar[Kind] = "episodic"
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_turn",
        "topic_prefix": "enforce",
        "descriptions": "as_written",
        "top_k": 5,
        "min_score": 0.3,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "write_path": ("auto_turn", "tool", "off", "auto_unread"),
        "topic_prefix": ("enforce", "advise"),
        "descriptions": ("as_written", "length_matched"),
    }

    def system_prompt(self) -> str:
        return SYSTEM_PROMPT

    def tools(self) -> Sequence[Tool]:
        everything = self._tools()
        return [t for t in everything if t.effect == "read" or self.settings["write_path"] != "off"]

    def _tools(self) -> Sequence[Tool]:
        return ()

    @property
    def _prefixes(self) -> tuple[str, ...]:
        return PREFIXES if self.settings["topic_prefix"] == "enforce" else ()

    def _search(self, ctx: Context, query: str) -> ToolResult:
        return build.search(
            ctx, query, Where(kinds=("episodic",)), SimilarityFloor(self.settings["min_score"]),
            self.settings["top_k"], show=show_episodes, words=False,
        )  # fmt: skip

    def after_turn(self, ctx: Context) -> None:
        """The seed's MemoryAgent: question and answer go in as one episode; an empty answer is not kept."""
        match self.settings["write_path"]:
            case "tool" | "off":
                return
            case "auto_unread" if self._has_read(ctx):
                return
        metadata: dict[str, Scalar] = {
            "query": ctx.query,
            "answer": ctx.answer,
            "session_id": ctx.scope.session,
            "query_id": f"{ctx.scope.session}-{ctx.turn}",
            "tool_calls": len(ctx.calls),
            "timestamp_utc": ctx.clock().isoformat(),
        }
        notes.ingest_turn(ctx, f"Q: {ctx.query}\nA: {ctx.answer}", "episodic", metadata)

    def _has_read(self, ctx: Context) -> bool:
        """Whether a tool that reads was called in this turn."""
        reading = {tool.name for tool in self.tools() if tool.effect == "read"}
        return any(call.name in reading for call in ctx.calls)


class Local2Dual(_Local2):
    """Two tools. `memory_recall` looks up a key or searches, by which argument it is given."""

    name = "local2_dual"
    title = "two tools, one dual-mode"
    origin = "seed 000, first plan"
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        **_Local2.choices,
        "descriptions": ("as_written",),  # length is matched to these two tools
    }

    def _tools(self) -> Sequence[Tool]:
        recall = build.tool(
            "memory_recall", RECALL, {"topic": RECALL_TOPIC, "query": RECALL_QUERY}, self._recall,
            intents=self._recall_intents,
        )  # fmt: skip
        save = build.save_topic_tool(
            "memory_save", SAVE, topic=SAVE_TOPIC, content=SAVE_CONTENT, prefixes=self._prefixes
        )
        return recall, save

    @staticmethod
    def _recall_intents(args: Mapping[str, Any]) -> tuple[Intent, ...]:
        return ("recall",) if str(args.get("topic") or "").strip() else ("search", "recall")

    def _recall(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        if (topic := args.get("topic", "")).strip():
            return build.read_topic(ctx, topic, FOUND)
        if (query := args.get("query", "")).strip():
            return self._search(ctx, query)
        raise InputError("pass topic (an exact key) or query (free text to search for).")


class Local2Single(_Local2):
    """Four single-purpose tools: choosing the tool is the only decision."""

    name = "local2_single"
    title = "four single-purpose tools"
    origin = "seed 000, revised plan"

    def _tools(self) -> Sequence[Tool]:
        words = SINGLE[self.settings["descriptions"]]
        return (
            build.save_topic_tool(
                "save_topic", words["save_topic"],
                topic=SAVE_TOPIC, content=SAVE_CONTENT, prefixes=self._prefixes,
            ),
            build.recall_topic_tool(
                "recall_topic", words["recall_topic"], topic=RECALL_TOPIC, found=FOUND
            ),
            build.save_tool(
                "save_memory", words["save_memory"], content=NOTE_CONTENT, kind="episodic",
                intents=("note", "remember"),
            ),
            build.search_tool(
                "search_memory", words["search_memory"], query=RECALL_QUERY, kinds=("episodic",),
                top_k=self.settings["top_k"], min_score=self.settings["min_score"], show=show_episodes,
            ),
        )  # fmt: skip
