"""The research harness of seed 004: what a session was worth remembering is written down when it ends.

A session is the seed's run. When it ends the model compresses it into an observation (`004`: prompt 60-70,
storing 71-93, schema 42-58); a later session finds those near its question by meaning and by word, ranked
by nearness and by what each run was worth (16-41), and reads them before it answers (94-107).

The seed's words are its prompt and the form of what is injected. Ours is what it leaves open: the rules of
`extract_keywords` (A7), the prompt and the form of the plan, the floor that decides that nothing is
relevant, the tool that reads, and `task_type`, which the seed is given by its caller.

The word leg reads what is embedded: of a record whose narrative alone is, no word of its facts. The seed
asks FTS5 about all columns; `embed: all` comes near that. Each leg gives four times as many as are injected,
twelve at least (A6); the seed takes the three nearest and whatever a word matches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from memeval.designs import notes
from memeval.designs import tools as build
from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.designs.formats import as_json, fitted
from memeval.designs.replies import asked_object, lines_of, one_line, storable
from memeval.errors import InputError, TextTooLongError
from memeval.memory.base import Candidates
from memeval.memory.chunking import passages
from memeval.memory.ranking import Ranker
from memeval.memory.scored import QualityWeighted
from memeval.messages import Tool, ToolResult
from memeval.records import Hit, Kind, Record, Scalar, Where

# Word for word. As it stands it cannot be formatted: `{output[:2000]}` asks a text for its item "[:2000]", so
# the output is cut before and the cut taken out of the prompt (A2).
COMPRESS_PROMPT = """\
You have just completed the following task:
Task: {task}
Output:
{output[:2000]}
Produce a structured observation for storage in memory:
1. A one-line title describing the topic
2. A 2-3 sentence narrative of what was covered and what was concluded
3. 5-10 key facts as bullet points
Output as JSON: {{"title": ..., "narrative": ..., "facts": [...]}}"""
OUTPUT_READ = 2000
"""Characters of a run's output that are compressed."""

PLAN_PROMPT = """\
Task: {task}

{context}

Plan the task before it is answered: a few short steps, and what prior work already covers, copied from the \
facts above, so that it need not be found out again.
Output as JSON: {{"steps": [...], "prior_work": [...]}}"""

SEARCH = (
    "Search the observations kept of earlier work: what was covered, what was concluded, how good it was. "
    "Use it before working something out that may have been worked out before."
)
SEARCH_QUERY = "The topic or the terms to look for."

ROOM = 1024
"""Tokens the design's own requests may answer with: ten facts as JSON do not fit into a chat reply's 256."""
STUB = 600
"""Characters of the output that stand for the narrative where it could not be compressed."""
OBSERVATIONS = Where(kinds=("observation",))

_STOP_WORD = re.compile(
    r"about|after|all|also|and|any|are|been|but|can|could|did|does|for|from|give|had|has|have|her|him|his|how"
    r"|into|its|just|like|make|may|more|most|not|now|our|out|over|please|shall|she|should|some|tell|than|that"
    r"|the|their|them|then|there|these|they|this|those|through|under|very|was|were|what|when|where|which"
    r"|while|who|why|will|with|would|write|you|your"
)
_TERM = re.compile(r"[^\W_][\w+#.]*")
_TASK_TYPES = {
    "enumerated": re.compile(r"\b(?:list|top)\b", re.IGNORECASE),
    "best_practices": re.compile(r"\b(?:best practices?|guidelines?|how should)\b", re.IGNORECASE),
}


def extract_keywords(task: str, most: int | None = 8) -> list[str]:
    """The words to look a task up by: lower case, each once, without stop words, the first `most`.

    Words of three signs or more; shorter ones that hold a digit, `+`, `#` or a point, such as `c++` or `r2`.
    """
    terms = (term.rstrip(".") for term in _TERM.findall(task.lower()))
    kept = (term for term in terms if len(term) >= 3 or re.search(r"[\d+#.]", term))
    return list(dict.fromkeys(term for term in kept if not _STOP_WORD.fullmatch(term)))[:most]


def task_type(task: str) -> str:
    """`enumerated` if it says list or top, else `best_practices` if it asks for such, else `research`."""
    return next((name for name, said in _TASK_TYPES.items() if said.search(task)), "research")


def format_context(hits: Sequence[Hit], ctx: Context) -> str:  # noqa: ARG001 - a Format takes both
    """The seed's block: each observation with its score, if it has one, its narrative and its facts."""
    lines = ["Prior work on related topics:"]
    for record in (hit.record for hit in hits):
        score = "" if record.final_score is None else f" — score {record.final_score:.1f}"
        lines += [f"[{_title(record)}{score}]", str(record.fields.get("narrative", record.text))]
        if facts := _facts(record):
            lines += ["Key facts:", *(f"• {fact}" for fact in facts)]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Relevant:
    """An inner ranker's hits that a leg calls a match: cosine at least `min_score`, or found by word.

    A vector index always finds something, so the floor is what makes "nothing relevant" an answer (HA-11).
    `by_title` keeps the best of those with one title, as upstream does; the seed tells runs apart by id, and
    so are those without a title.
    """

    inner: Ranker
    min_score: float
    by_title: bool = False

    def rank(self, candidates: Candidates, k: int) -> list[Hit]:
        """The best `k` of them, in the inner ranker's order."""
        kept: dict[str, Hit] = {}
        for hit in self.inner.rank(candidates, len(candidates)):
            if (hit.cosine or 0.0) >= self.min_score or hit.keyword is not None:
                title = str(hit.record.fields.get("title") or "") if self.by_title else ""
                kept.setdefault(title or hit.record.id, hit)
        return list(kept.values())[:k]


class HarnessRuns(MemoryDesign):
    """No tools: sessions are compressed when they end, and what fits is put before a later one's turns.

    Where the model's observation could not be read a stub stands for it in the store. Neither injection nor
    the tool finds one, unless `inject_stubs`: it would have the model read its own output as findings.
    """

    name = "harness_runs"
    title = "sessions compressed, injected by worth"
    origin = "seed 004"
    version: ClassVar[int] = 2
    remembers: ClassVar[Kind] = "observation"
    defaults: ClassVar[Mapping[str, Any]] = {
        "write_path": "auto_run",
        "read_path": "inject",
        "embed": "narrative",
        "plan": "on",
        "dedupe": "id",
        "scale": "cosine",
        "top_k": 3,
        "min_score": 0.3,
        "facts": 10,
        "inject_stubs": False,
    }
    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "write_path": ("auto_run", "off"),
        "read_path": ("inject", "both", "tool"),
        "embed": ("narrative", "all"),
        "plan": ("on", "off"),
        "dedupe": ("id", "title"),
        "scale": ("cosine", "unit"),
    }

    def tools(self) -> Sequence[Tool]:
        if self.settings["read_path"] == "inject":
            return ()
        search = build.tool(
            "search_observations", SEARCH, {"query": SEARCH_QUERY}, self._search,
            required=["query"], intents=("search", "recall"),
        )  # fmt: skip
        return (search,)

    def before_turn(self, ctx: Context) -> Injection | None:
        """The seed's `get_context`, with a plan before a session's first turn; nothing where nothing fits.

        A long message is looked up by its first passage; one that cannot be looked up is counted.
        """
        if self.settings["read_path"] == "tool":
            return None
        try:
            hits = self._get_context(ctx, passages(ctx.query)[0])
        except (InputError, TextTooLongError):
            ctx.counts["injections_skipped"] += 1
            return None
        if not hits:
            return None
        context, shown = fitted(hits, ctx, format_context)
        plan = self._plan(ctx, context) if self.settings["plan"] == "on" and ctx.turn == 1 else ""
        return Injection(context + plan, tuple(shown))

    def after_turn(self, ctx: Context) -> None:
        self._run(ctx).append((ctx.query, ctx.answer))

    def after_session(self, ctx: Context) -> None:
        """The run is over: its first message is the task, its answers are the output."""
        run = self._run(ctx)
        answers = [answer for _, answer in run if answer.strip()]
        if answers and self.settings["write_path"] == "auto_run":
            self._compress_and_store(ctx, run[0][0], "\n\n".join(answers).strip())

    def _compress_and_store(self, ctx: Context, task: str, output: str) -> None:
        """One request makes the observation; where it cannot be read a marked stub stands for it.

        What the store cannot keep is left out and counted.
        """
        prompt = COMPRESS_PROMPT.replace("[:2000]", "").format(task=task, output=output[:OUTPUT_READ])
        made = asked_object(ctx, prompt, num_predict=ROOM)
        title, narrative = one_line(made.get("title")), one_line(made.get("narrative"))
        facts = lines_of(made.get("facts"))[: self.settings["facts"]]
        stub = not (title and narrative and isinstance(made.get("facts"), list))
        if stub:
            title, narrative, facts = one_line(task), storable(output[:STUB]), []
        ctx.counts["compressions"] += 1
        ctx.counts["stubs"] += stub
        fields: dict[str, Scalar] = {
            "title": title,
            "narrative": narrative,
            "facts": as_json(facts),
            "task": storable(task),
            "task_type": task_type(task),
            "timestamp": ctx.clock().isoformat(),
            **({"stub": True} if stub else {}),
        }
        parts = [narrative] if self.settings["embed"] == "narrative" else [title, narrative, *facts]
        notes.keep(
            ctx, "\n".join(parts), "observation", "compress_skipped",
            fields=fields, final_score=ctx.final_score,
        )  # fmt: skip

    def _plan(self, ctx: Context, context: str) -> str:
        """The plan as text, and counted how much of its prior work stands in what it was made from.

        An item is grounded if more than half of its keywords are among those of the injected text.
        """
        made = asked_object(ctx, PLAN_PROMPT.format(task=ctx.query, context=context), num_predict=ROOM)
        steps, prior = lines_of(made.get("steps")), lines_of(made.get("prior_work"))
        known = set(extract_keywords(context, None))
        ctx.counts["plans"] += 1
        ctx.counts["plans_unreadable"] += not (steps or prior)
        ctx.counts["prior_work_items"] += len(prior)
        ctx.counts["prior_work_grounded"] += sum(_grounded(item, known) for item in prior)
        numbered = [f"{n}. {step}" for n, step in enumerate(steps, 1)]
        lines = [*(["Plan:", *numbered] if steps else []), *(["Already covered:"] if prior else [])]
        return "".join(f"\n{line}" for line in [*lines, *(f"• {item}" for item in prior)])

    def _search(self, args: Mapping[str, Any], ctx: Context) -> ToolResult:
        return build.answer(self._get_context(ctx, args["query"]), ctx, show=format_context)

    def _get_context(self, ctx: Context, task: str) -> list[Hit]:
        """The observations that fit a task, best first, of all that either leg finds.

        The leg by meaning looks for the task, the leg by word for its keywords alone; what only a word finds
        is ranked by its true cosine with the task (A3).
        """
        stubs = replace(OBSERVATIONS, fields={"stub": True})
        left_out = () if self.settings["inject_stubs"] else (record.id for record in ctx.store.find(stubs))
        where = replace(OBSERVATIONS, exclude=frozenset(left_out))
        quality = QualityWeighted(scale=self.settings["scale"])
        ranker = Relevant(quality, self.settings["min_score"], self.settings["dedupe"] == "title")
        keywords = " ".join(extract_keywords(task))
        return notes.find(ctx, task, where, ranker, self.settings["top_k"], words=keywords)

    @staticmethod
    def _run(ctx: Context) -> list[tuple[str, str]]:
        run: list[tuple[str, str]] = ctx.state.setdefault(f"run:{ctx.scope.session}", [])
        return run


def _grounded(item: str, known: set[str]) -> bool:
    words = extract_keywords(item, None)
    return 2 * len(known.intersection(words)) > len(words)


def _title(record: Record) -> str:
    return str(record.fields.get("title") or "Untitled")


def _facts(record: Record) -> list[str]:
    """The facts of an observation: JSON as they are stored here, or a line each as a story gives them."""
    kept = str(record.fields.get("facts", ""))
    try:
        return lines_of(json.loads(kept))
    except ValueError:
        return lines_of(kept.splitlines())
