"""Memories, questions, and which memory answers which question: a folder of three plain files.

`corpus.jsonl` holds `{"id", "text", "kind"?}` a line, `queries.jsonl` `{"id", "text", "category"?}`, and
`qrels.tsv` TREC's four columns `query 0 document grade` (a grade above 0 is relevant). A question of the
category `unanswerable` has no relevant memory, every other one has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memeval.errors import InputError, nearest
from memeval.shipped import shipped

UNANSWERABLE = "unanswerable"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Item:
    """A memory or a question; `label` is a memory's kind or a question's category."""

    id: str
    text: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A checked dataset. `qrels` maps a question's id to grades of memories; `digest` is of all it holds."""

    name: str
    path: Path
    documents: tuple[Item, ...]
    queries: tuple[Item, ...]
    qrels: Mapping[str, Mapping[str, int]]
    digest: str

    def grades(self) -> Floats:
        """float64[queries, documents]: how relevant each memory is to each question, 0 for not at all."""
        at = {document.id: i for i, document in enumerate(self.documents)}
        found = np.zeros((len(self.queries), len(self.documents)))
        for row, query in zip(found, self.queries, strict=True):
            for document, grade in self.qrels.get(query.id, {}).items():
                row[at[document]] = grade
        return found


def find_dataset(name: str, base: Path | None = None) -> Path:
    """The folder of a dataset: a path seen from `base`, or the name of one that comes with memeval."""
    own = (base or Path.cwd()) / name
    if own.is_dir():
        return own
    home = shipped("scenarios") / "retrieval"
    if (home / name / "corpus.jsonl").is_file():
        return home / name
    known = [folder.parent.name for folder in home.glob("*/corpus.jsonl")]
    raise InputError(f"no dataset {name!r}: no folder {own}, and none of memeval's own{nearest(name, known)}")


def load_dataset(path: Path) -> Dataset:
    """Read and check a dataset. Raises InputError with file and line of the first thing that is wrong."""
    documents = _items(path / "corpus.jsonl", "kind")
    queries = _items(path / "queries.jsonl", "category")
    qrels = _qrels(path / "qrels.tsv", documents, queries)
    for query, (line, _) in queries.items():
        answerable = any(grade > 0 for grade in qrels.get(query, {}).values())
        unanswerable = queries[query][1].label == UNANSWERABLE
        if answerable == unanswerable:
            what = "is unanswerable and has a" if unanswerable else "has no"
            where = f"{path / 'queries.jsonl'}:{line}"
            raise InputError(f"{where}: {query!r} {what} relevant memory in qrels.tsv")
    # Files are hashed by what they hold, so that line ends and the order of qrels make no new dataset.
    items = [[[d.id, d.text, d.label] for _, d in part.values()] for part in (documents, queries)]
    judged = sorted((q, d, g) for q, found in qrels.items() for d, g in found.items())
    digest = hashlib.sha256(json.dumps([*items, judged]).encode()).hexdigest()
    return Dataset(
        name=path.resolve().name,
        path=path,
        documents=tuple(item for _, item in documents.values()),
        queries=tuple(item for _, item in queries.values()),
        qrels=qrels,
        digest=digest,
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}:{at}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    found = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found = True
            yield number, line.strip()
    if not found:
        raise InputError(f"{path}: empty; a dataset needs at least one line here")


def _items(path: Path, label: str) -> dict[str, tuple[int, Item]]:
    found: dict[str, tuple[int, Item]] = {}
    for number, line in _lines(path):
        try:
            data = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"{path}:{number}: not JSON: {error}") from None
        if not isinstance(data, dict):
            raise InputError(f'{path}:{number}: must be an object such as {{"id": "a", "text": "..."}}')
        known = ("id", "text", label)
        for key, value in data.items():
            if key not in known:
                raise InputError(f"{path}:{number}: unknown key {key!r}{nearest(key, known)}")
            if not isinstance(value, str):
                raise InputError(f"{path}:{number}: {key!r} must be text, not {value!r}")
        for key in ("id", "text"):
            if not data.get(key, "").strip():
                raise InputError(f"{path}:{number}: {key!r} is missing or empty")
        item = Item(data["id"], data["text"], data.get(label, ""))
        if item.id in found:
            first = found[item.id][0]
            raise InputError(f"{path}:{number}: id {item.id!r} stands twice, first on line {first}")
        found[item.id] = number, item
    return found


def _qrels(
    path: Path, documents: Mapping[str, object], queries: Mapping[str, object]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        columns = line.split()
        if len(columns) != 4 or not columns[3].isdecimal():
            raise InputError(f"{path}:{number}: wants four columns, query 0 document grade, not {line!r}")
        query, _, document, grade = columns
        for name, known, what in ((query, queries, "question"), (document, documents, "memory")):
            if name not in known:
                raise InputError(f"{path}:{number}: there is no {what} {name!r}{nearest(name, known)}")
        judged = found.setdefault(query, {})
        if document in judged:
            raise InputError(f"{path}:{number}: {query!r} and {document!r} are judged twice")
        judged[document] = int(grade)
    return found
