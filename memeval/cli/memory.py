"""`memeval memory list`, `search` and `rate`: look into a store as a person. Only a rating is changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from memeval.cli._common import emit, host_option, json_option, short, table
from memeval.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memeval.memory.browse import Namespace
    from memeval.records import Record
    from memeval.settings import Settings


@click.group(name="memory")
def command() -> None:
    """Look into a memory store as a person.

    STORE is the folder of a Chroma store, by default `chroma_path` of memory.yaml.
    """


_PATH = click.Path(path_type=Path)


def _options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        json_option,
        click.option("--config", metavar="FILE", type=_PATH, help="Settings, if not memory.yaml."),
        click.option("--collection", metavar="NAME", help="Which collection, if the user has several."),
        click.option("--user", metavar="NAME", help="Whose memories.  [default: the only user's]"),
    ):  # fmt: skip
        function = option(function)
    return function


@command.command(name="list")
@click.argument("store", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="How many at most.")
@click.option("--kind", metavar="KIND", help="Only memories of this kind, such as observation.")
@_options
def list_(
    store: str | None, limit: int, kind: str | None,
    user: str | None, collection: str | None, config: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """List memories, the newest first."""
    from memeval.errors import nearest
    from memeval.memory.browse import open_existing
    from memeval.records import Kind, Where
    from memeval.settings import load_settings

    kinds: tuple[Kind, ...] = get_args(Kind)
    wanted = tuple(known for known in kinds if known == kind)
    if kind is not None and not wanted:
        raise InputError(f"there is no kind of memory {kind!r}{nearest(kind, kinds)}")
    settings = load_settings(config)
    path = store or settings.chroma_path
    space = _space(path, user, collection, settings)
    opened = open_existing(path, space.user, collection=space.collection)
    try:
        kept = opened.find(Where(kinds=wanted))
    finally:
        opened.close()
    newest = sorted(kept, key=lambda record: record.updated_at, reverse=True)[:limit]
    data = [_describe(record) for record in newest]
    if as_json:
        emit(data)
        return
    columns, rows = _columns(newest)
    table(columns, rows)
    shown = f"the newest {limit} of {len(kept)}" if len(kept) > limit else f"{len(kept)}"
    of_kind = f" of kind {kind}" if kind else ""
    click.echo(f"{shown} memories{of_kind} of {space.user!r} in {path}, embedded by {space.embedder}")


@command.command()
@click.argument("words", nargs=-1, required=True, metavar="[STORE] QUERY")
@click.option("--top-k", type=click.IntRange(min=1), help="How many at most.  [default: memory.yaml's top_k]")
@click.option("--embedder", metavar="NAME", help="What the store was embedded by.  [default: memory.yaml's]")
@host_option
@_options
def search(
    words: tuple[str, ...], top_k: int | None, embedder: str | None, host: str | None,
    user: str | None, collection: str | None, config: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Find memories near a QUERY, by meaning and by word.

    Shows what is found below memory.yaml's `min_score` too, and marks it. Both figures are this command's
    own: what a model is shown is up to its design, whose settings a sweep gives.
    """
    from memeval.embedding import open_embedder
    from memeval.memory.browse import open_existing
    from memeval.memory.ranking import SimilarityFloor
    from memeval.settings import load_settings

    if len(words) > 2:
        raise InputError(f"{len(words)} words where STORE and QUERY are wanted; put the query in quotes")
    query, settings = words[-1], load_settings(config)
    if not query.strip():
        raise InputError("the query is empty; say what to look for")
    path = words[0] if len(words) == 2 else settings.chroma_path
    space = _space(path, user, collection, settings)
    name = embedder or settings.embedder
    if name != space.embedder and not name.startswith(f"{space.embedder}:"):
        raise InputError(
            f"memory store {path} was embedded by {space.embedder}, not by {name}; give --embedder"
            f" {space.embedder}, or set embedding_model to it in memory.yaml"
        )
    by = open_embedder(name, host=host or settings.ollama_host or None)
    opened = open_existing(path, space.user, by, space.collection)
    try:
        k = top_k or settings.top_k
        hits = SimilarityFloor(-1.0).rank(opened.candidates(query, k=k), k)
    finally:
        opened.close()
    found = [
        {"rank": rank, "cosine": hit.cosine, "keyword": hit.keyword,
         "below_min_score": hit.score < settings.min_score, "passage": hit.passage, **_describe(hit.record)}
        for rank, hit in enumerate(hits, 1)
    ]  # fmt: skip
    if as_json:
        emit(found)
        return
    columns, rows = _columns([hit.record for hit in hits], [hit.passage for hit in hits])
    scores = [
        [rank, f"{hit.score:.3f}{' <' if hit.score < settings.min_score else ''}",
         "" if hit.keyword is None else f"{hit.keyword:.2f}"]
        for rank, hit in enumerate(hits, 1)
    ]  # fmt: skip
    table(
        [">", ">cosine", ">keyword", *columns],
        [[*score, *row] for score, row in zip(scores, rows, strict=True)],
    )
    click.echo(
        f"{len(rows)} of {space.count} memories of {space.user!r}; <: below min_score {settings.min_score}"
    )


# Else -1 would be read as an option.
@command.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="[STORE] ID VALUE")
@_options
def rate(
    words: tuple[str, ...], user: str | None, collection: str | None, config: Path | None, as_json: bool
) -> None:
    """Rate the memory ID, from -3 (bad) to 3 (good).

    Designs that rank by quality put what was rated higher first; nothing is embedded.
    """
    from memeval.memory.browse import open_existing
    from memeval.settings import load_settings

    if unknown := next((word for word in words if word.startswith("--")), None):
        raise click.NoSuchOption(unknown)
    if len(words) not in (2, 3):
        raise InputError(f"{len(words)} words where ID and VALUE are wanted, with or without STORE before")
    record_id, value = words[-2:]
    if not re.fullmatch("[+-]?[0-3]", value):
        raise InputError(f"a rating is a whole number from -3 to 3, and {value!r} is not")
    settings = load_settings(config)
    path = words[0] if len(words) == 3 else settings.chroma_path
    space = _space(path, user, collection, settings)
    opened = open_existing(path, space.user, collection=space.collection)
    try:
        before = opened.get(record_id)
        if before is None:
            ids = [record.id for record in opened.snapshot()]
            raise InputError(f"{space.user!r} has no memory {record_id!r} in {path}{_close(record_id, ids)}")
        record = replace(before, rating=float(int(value)))
        opened.patch(record_id, rating=record.rating)
    finally:
        opened.close()
    if as_json:
        emit(_describe(record))
        return
    was = f", was {_rating(before)}" if before.rating is not None else ""
    click.echo(f"{record_id} is rated {_rating(record)}{was}: {short(record.text)}")


def _close(record_id: str, ids: Sequence[str]) -> str:
    """A hint at the nearest id; a store may have thousands, so they are not listed."""
    close = get_close_matches(record_id, ids, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; `memeval memory list` shows what there is"


def _space(path: str, user: str | None, collection: str | None, settings: Settings) -> Namespace:
    """The one namespace that is meant. Raises InputError that lists what there is."""
    from memeval.errors import nearest
    from memeval.memory.browse import users

    found = users(path)
    if not found:
        raise InputError(f"memory store {path} holds no memories")
    names = sorted({space.user for space in found})
    if user is None:
        if len(names) > 1:
            raise InputError(
                f"memory store {path} has several users, choose one with --user: {', '.join(names)}"
            )
        user = names[0]
    own = [space for space in found if space.user == user]
    if not own:
        raise InputError(f"memory store {path} holds no memories of user {user!r}{nearest(user, names)}")
    wanted = collection or (settings.collection if len(own) > 1 else None)
    fit = [space for space in own if wanted in (None, space.collection)]
    if len(fit) != 1:
        there = ", ".join(space.collection for space in own)
        raise InputError(
            f"memory store {path} has collections of {user!r}, choose one with --collection: {there}"
        )
    return fit[0]


def _columns(records: Sequence[Record], passages: Sequence[str] = ()) -> tuple[list[str], list[list[str]]]:
    """A table's columns and rows, with scores and ratings where some record has one; passages for texts."""
    scores = [record.final_score for record in records]
    shown: dict[str, list[str]] = {
        "id": [record.id for record in records],
        "kind": [record.kind for record in records],
        "origin": [record.origin for record in records],
        "updated": [f"{record.updated_at:%Y-%m-%d %H:%M}" for record in records],
        ">final_score": ["" if score is None else f"{score:g}" for score in scores],
        ">rating": [_rating(record) for record in records],
        "text": [short(passage or record.text, 90) for passage, record in zip_longest(passages, records)],
    }
    kept = {name: cells for name, cells in shown.items() if any(cells) or not name.startswith(">")}
    return list(kept), [list(row) for row in zip(*kept.values(), strict=True)]


def _rating(record: Record) -> str:
    return "" if record.rating is None else f"{record.rating:+g}"


def _describe(record: Record) -> dict[str, Any]:
    return {
        "id": record.id,
        "kind": record.kind,
        "origin": record.origin,
        "text": record.text,
        "fields": dict(record.fields),
        "tags": list(record.tags),
        "created_at": record.created_at.isoformat(),
        "updated_at": record.updated_at.isoformat(),
        "final_score": record.final_score,
        "critic": record.critic,
        "rating": record.rating,
        "by_passage": record.by_passage,
    }
