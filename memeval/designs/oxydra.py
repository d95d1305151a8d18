"""Oxydra, as seeds 002 and 003 describe it: four tools over notes in plain sentences, later with tags.

Names, parameters, descriptions, timeouts, ids and results are the seeds' (tools: 70-153 of `002`, 245-382 of
`003`); `oxydra_prompt` holds their words. The messages of success and of an unknown note are those Oxydra
shipped (2.C.1 of the requirements). What they leave open is ours: hints in errors, scores to two places, what
a scratchpad answers, and the line behind the array where a `top_k` is out of range (A24).

A search has no lowest score, as in both seeds, so once there is a note any query finds one. Of equal scores
the newest stands first, as Oxydra shipped it (2.C.2). A note is one result, by its best passage (A21);
one result a passage is not offered, as stores rank whole records. A filter by tags leaves the conversation
out, because its messages have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from memeval.designs import notes
from memeval.designs import oxydra_prompt as say
from memeval.designs import tools as build
from memeval.designs.base import Context, MemoryDesign
from memeval.designs.formats import CAP, as_json, json_list, shown_text
from memeval.designs.scrub import scrub
from memeval.errors import InputError
from memeval.memory.ranking import WeightedFusion
from memeval.messages import Tool, ToolCall, ToolResult
from memeval.records import Hit, Ids, Kind, Record, Where

SEARCH_SECONDS, WRITE_SECONDS = 15.0, 10.0
MOST_RESULTS = 20
NOT_FOUND = "note `{id}` not found; use memory_search to find the note and its note_id."
SCRATCHPAD_BYTES = 8 * 1024


class _Oxydra(MemoryDesign):
    """What both designs share: four tools over a user's notes, and the messages of each session."""

    version: ClassVar[int] = 2
    words: ClassVar[Mapping[str, str]] = say.NOTES
    content: ClassVar[str | Mapping[str, Any]] = say.CONTENT
    note_tags: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, Any]] = {"keep_messages": True, "top_k": 5, "vector_weight": 0.7}

    def system_prompt(self) -> str:
        return say.BASE

    def tools(self) -> Sequence[Tool]:
        return [_for_a_user(tool) for tool in self._tools()]

    def _tools(self) -> list[Tool]:
        return [
            build.tool(
                "memory_search", self.words["memory_search"], self._search_parameters(), self._searcher(),
                required=["query"], intents=("search", "recall"), timeout_s=SEARCH_SECONDS,
            ),
            build.save_tool(
                "memory_save", self.words["memory_save"], content=self.content, tags=self.note_tags,
                said=_done("saved"), intents=("remember", "note"), by_passage=True, timeout_s=WRITE_SECONDS,
            ),
            build.update_tool(
                "memory_update", self.words["memory_update"], record_id=say.UPDATE_ID, parameter="note_id",
                content=say.UPDATE_CONTENT, tags=self.note_tags, said=_done("updated"), missing=NOT_FOUND,
                timeout_s=WRITE_SECONDS, fresh=self.settings.get("reset_created_on_update", False),
            ),
            build.delete_tool(
                "memory_delete", self.words["memory_delete"], record_id=say.DELETE_ID, parameter="note_id",
                said=_done("deleted"), missing=NOT_FOUND, timeout_s=WRITE_SECONDS,
            ),
        ]  # fmt: skip

    def _search_parameters(self) -> dict[str, str | Mapping[str, Any]]:
        tags = {"tags": build.texts(say.SEARCH_TAGS[self.settings["tag_match"]])} if self.note_tags else {}
        return {
            "query": say.QUERY,
            "top_k": {"type": "integer", "description": say.TOP_K.format(self.settings["top_k"])},
            **tags,
            "include_conversation": {"type": "boolean", "description": say.CONVERSATION},
        }

    def _searcher(self) -> build.Run:
        # made with the tools, so that a weight that is none is refused before the first trial
        ranker = WeightedFusion(1 - self.settings["vector_weight"], "minmax", newest_first=True)

        def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
            asked = args.get("top_k")
            k = notes.limited(asked, self.settings["top_k"], MOST_RESULTS)
            said = "" if asked in (None, k) else f"\n(top_k can be 1 to {MOST_RESULTS}; {k} was taken)"
            found = build.search(
                ctx, args["query"], self._where(args, ctx), ranker, k,
                show=json_list(self.shown), empty="[]", cap=CAP - len(said),
            )  # fmt: skip
            return replace(found, text=found.text + said)

        return run

    def _where(self, args: Mapping[str, Any], ctx: Context) -> Where:
        """The user's notes; if asked for, this session's messages in the same pool, ranked once (A20)."""
        kinds: tuple[Kind, ...] = ("note",)
        exclude: frozenset[str] = frozenset()
        if args.get("include_conversation") and ctx.scope.session:
            said = ctx.store.find(Where(kinds=("message",)))
            kinds = ("note", "message")
            exclude = frozenset(r.id for r in said if r.fields.get("session") != ctx.scope.session)
        return Where(
            kinds=kinds, exclude=exclude, tags=notes.clean_tags(args.get("tags") or ()),
            tag_match=self.settings.get("tag_match", "any"),
        )  # fmt: skip

    def shown(self, hit: Hit) -> dict[str, Any]:
        """A result: the passage found, without known secrets, and its note's id, empty for a message."""
        is_note = hit.record.kind == "note"
        return {
            "note_id": hit.record.id if is_note else "",
            "text": scrub(shown_text(hit)),
            "score": round(hit.score, 2),
            "source": "user_memory" if is_note else "conversation",
        }

    def on_result(self, ctx: Context, call: ToolCall, result: ToolResult) -> ToolResult:
        """An error without known secrets.

        What else is told is JSON and scrubbed text by text as it is made: a key without an end would take the
        rest of the array with it.
        """
        text = scrub(result.text) if result.is_error else result.text
        return result if text == result.text else replace(result, text=text)

    def after_turn(self, ctx: Context) -> None:
        """Keep what was said, so that a search of the conversation can find it; never as a note.

        What the store cannot keep is left out and counted.
        """
        if not self.settings["keep_messages"] or not ctx.scope.session:
            return
        for role, said in (("user", ctx.query), ("assistant", ctx.answer)):
            if not said.strip():
                continue
            fields = {"session": ctx.scope.session, "role": role}
            notes.keep(ctx, said, "message", "messages_skipped", fields=fields)


class OxydraNotes(_Oxydra):
    """Search, save, update and delete: notes are sentences with an id, and nothing else."""

    name = "oxydra_notes"
    title = "four tools over plain notes"
    origin = "seed 002"


class OxydraTags(_Oxydra):
    """The same four with tags and dates, stronger descriptions, and a prompt that says when to use them."""

    name = "oxydra_tags"
    title = "four tools over tagged notes, with a prompt"
    origin = "seed 003"
    words = say.TAGS
    content = build.text(say.SELF_CONTAINED, minLength=1)
    note_tags = say.NOTE_TAGS
    defaults: ClassVar[Mapping[str, Any]] = {
        **_Oxydra.defaults,
        "prompt": "guide",
        "tag_match": "any",
        "reset_created_on_update": True,
        "scratchpad": False,
        "embedding_backend": "sweep",
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "prompt": ("none", "guide", "mandate"),
        "tag_match": ("any", "all"),
        "embedding_backend": ("sweep", "fastembed", "deterministic"),
    }

    def system_prompt(self) -> str:
        return say.PROMPTS[self.settings["prompt"]]

    def embedder(self, offered: str) -> str:
        """The embedder to open, given the sweep's: `deterministic` is `hash`, `fastembed` any real one.

        The seed falls back to the hash with a warning; here a wish that cannot be met is an InputError, so
        that no figure stands under another embedder's name.
        """
        backend = self.settings["embedding_backend"]
        if backend == "fastembed" and offered == "hash":
            raise InputError(
                f"design {self.name!r} has embedding_backend 'fastembed', but the sweep's embedder is 'hash',"
                " which knows no meaning; list a real embedder, or set 'deterministic'"
            )
        return "hash" if backend == "deterministic" else offered

    def shown(self, hit: Hit) -> dict[str, Any]:
        """A result with its note's tags and `created_at`, and nothing else, as the seed has it (OE-4).

        Oxydra later showed `updated_at` as well (2.C.1): here it is stored and not shown.
        """
        tags = [scrub(tag) for tag in hit.record.tags]
        return {**super().shown(hit), "tags": tags, "created_at": _iso(hit.record.created_at)}

    def _tools(self) -> list[Tool]:
        return super()._tools() + (_scratchpad() if self.settings["scratchpad"] else [])


def _for_a_user(tool: Tool) -> Tool:
    """The tool, refused where nobody is known to be the user (OX-11), and with the seed's ids (OX-4)."""

    def run(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        if not ctx.scope.user:
            return build.failed("user context is not available; memory cannot be used in this conversation.")
        return tool.run(args, replace(ctx, ids=_uuids(ctx.ids)))

    return replace(tool, run=run)


def _uuids(ids: Ids) -> Ids:
    """Ids with a UUID of version 4 behind their prefix, the same again for the same `ids`."""

    def fresh(prefix: str) -> str:
        digest = hashlib.sha256(ids(prefix).encode()).digest()
        return f"{prefix}-{UUID(bytes=digest[:16], version=4)}"

    return fresh


def _done(what: str) -> Callable[[Record], str]:
    return lambda record: as_json({"note_id": record.id, "message": f"Note {what} successfully."})


def _iso(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _scratchpad() -> list[Tool]:
    """Three tools over a list that is kept beside the memory, one a user and session. No save, no recall."""

    def pads(ctx: Context) -> dict[tuple[str, str], list[str]]:
        kept: dict[tuple[str, str], list[str]] = ctx.state.setdefault("scratchpads", {})
        return kept

    def read(_args: Mapping[str, Any], ctx: Context) -> ToolResult:
        items = pads(ctx).get((ctx.scope.user, ctx.scope.session), [])
        return ToolResult(text=as_json({"items": [scrub(item) for item in items]}))

    def write(args: Mapping[str, Any], ctx: Context) -> ToolResult:
        items = list(args["items"])
        if not all(item.strip() for item in items):
            raise InputError("an item is empty; give each some words.")
        size = len(as_json(items).encode(errors="replace"))
        if size > SCRATCHPAD_BYTES:
            raise InputError(
                f"the items take {size} bytes; at most {SCRATCHPAD_BYTES} fit. Write fewer or shorter ones."
            )
        pads(ctx)[ctx.scope.user, ctx.scope.session] = items
        return ToolResult(text=as_json({"message": "Scratchpad written successfully."}))

    def clear(_args: Mapping[str, Any], ctx: Context) -> ToolResult:
        pads(ctx).pop((ctx.scope.user, ctx.scope.session), None)
        return ToolResult(text=as_json({"message": "Scratchpad cleared successfully."}))

    return [
        build.tool(
            "scratchpad_read", say.SCRATCHPAD["scratchpad_read"], {}, read, timeout_s=WRITE_SECONDS
        ),
        build.tool(
            "scratchpad_write", say.SCRATCHPAD["scratchpad_write"], {"items": say.ITEMS}, write,
            required=["items"], effect="write", timeout_s=WRITE_SECONDS,
        ),
        build.tool(
            "scratchpad_clear", say.SCRATCHPAD["scratchpad_clear"], {}, clear,
            effect="write", timeout_s=WRITE_SECONDS,
        ),
    ]  # fmt: skip
