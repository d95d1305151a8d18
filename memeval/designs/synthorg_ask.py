"""What the SynthOrg designs ask of the model on the side: is this enough, and what is a better query.

Search-and-Ask is "agentic RAG" of seed 001 (lines 43-47, SO-9 of the requirements) in the form that SynthOrg
gave it (2.B.4). All prompts are ours. A request that the model fails ends the asking and never the search:
what was found so far stands. Requests are counted as `rewrites` and `sufficiency_checks`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from memeval.designs.base import Context
from memeval.designs.window import answered
from memeval.errors import InputError, TextTooLongError
from memeval.records import Hit

Retrieve = Callable[[str], Sequence[Hit]]
Listed = Callable[[Sequence[Hit]], str]
SUFFICIENT = "SUFFICIENT"

_CHECK = (
    "Someone searched a memory for:\n{query}\n\nIt gave:\n{found}\n\n"
    "Is what is needed in there? You may think in a few words. The last line of your answer is one word: "
    "SUFFICIENT or INSUFFICIENT."
)
_REWRITE = (
    "Someone searched a memory for:\n{query}\n\nIt gave:\n{found}\n\n"
    "That was not enough. Write one better query: other words for the same thing, names that are meant, a "
    "wider or a narrower subject. Answer with the query and nothing else."
)


def search_and_ask(
    ctx: Context, query: str, retrieve: Retrieve, listed: Listed, limit: int, *,
    rewrite: bool, check: bool, rounds: int,
) -> tuple[list[Hit], bool]:  # fmt: skip
    """The best `limit` hits of one search and up to `rounds` more, and whether they were held to be enough.

    With both on, as SynthOrg does: search, check, rewrite, search again, and a last check, so at most
    1 + `rounds` searches and as many checks. Without `check` every round is used; without `rewrite` there is
    one search and one check. A record found twice keeps its best score.
    """
    found = list(retrieve(query))
    for _ in range(rounds if rewrite else 0):
        if check and is_sufficient(ctx, query, listed(found)):
            return found[:limit], True
        better = rewritten(ctx, query, listed(found))
        if better is None or better == query:
            return found[:limit], not check
        query = better
        try:
            found = merged(found, retrieve(query))
        except (InputError, TextTooLongError):  # a query that the model wrote and the embedder cannot read
            return found[:limit], not check
    return found[:limit], not check or is_sufficient(ctx, query, listed(found))


def merged(found: Sequence[Hit], more: Sequence[Hit]) -> list[Hit]:
    """Both, each record once with its best score, highest score first; ties as they were first found."""
    best: dict[str, Hit] = {}
    for hit in (*found, *more):
        known = best.get(hit.record.id)
        if known is None or hit.score > known.score:
            best[hit.record.id] = hit
    return sorted(best.values(), key=lambda hit: -hit.score)


def is_sufficient(ctx: Context, query: str, found: str) -> bool:
    """Whether the last line of the model's answer begins with SUFFICIENT; so does no usable answer."""
    ctx.counts["sufficiency_checks"] += 1
    answer = answered(ctx, _CHECK.format(query=query, found=found))
    if not answer:
        return True
    first = re.search(r"\w+", answer.splitlines()[-1])
    return first is not None and first[0].upper() == SUFFICIENT


def rewritten(ctx: Context, query: str, found: str) -> str | None:
    """The query in the model's better words; None where it has none."""
    ctx.counts["rewrites"] += 1
    return answered(ctx, _REWRITE.format(query=query, found=found)).strip("\"'` ") or None
