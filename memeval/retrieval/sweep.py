"""A retrieval sweep: a file says which embedders and prefix modes, a run measures each of them exactly.

No store takes part. Every memory is scored against every question by the cosine of their vectors, so that an
index's misses and a model's are never mixed up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from memeval.embedding import (
    PREFIX_MODES,
    EmbeddingCache,
    PrefixedEmbedder,
    PrefixMode,
    UnsupportedPrefix,
    open_embedder,
)
from memeval.embedding.prefixes import apply
from memeval.errors import InputError, MemevalError
from memeval.owncode import import_file
from memeval.retrieval import metrics
from memeval.retrieval.datasets import Dataset, Floats, find_dataset, load_dataset
from memeval.retrieval.results import RetrievalFrames, load_retrieval, refuse_foreign, write
from memeval.scenarios.schema import Name
from memeval.yamlfile import checked, read_yaml

__all__ = [
    "EmbedderEntry",
    "RetrievalFrames",
    "RetrievalRun",
    "RetrievalSweep",
    "load_retrieval",
    "load_sweep",
    "run_retrieval",
]

Progress = Callable[[int, int, str], None]
"""Told before each cell, and once at the end: cells done, cells in all, the cell that comes."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class EmbedderEntry(_Strict):
    """An embedder, by its name alone or with what is pinned for it."""

    name: Annotated[str, Field(min_length=1)]
    prefix: PrefixMode | None = None
    """Only this prefix mode, whatever the sweep's `prefixes` say."""
    dims: Annotated[int, Field(ge=1)] | None = None
    """Cut to so many dimensions, where the model's card allows it."""

    @property
    def label(self) -> str:
        """The name that rows and charts carry."""
        return self.name if self.dims is None else f"{self.name} dims={self.dims}"


def _entry(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class RetrievalSweep(_Strict):
    """What a retrieval sweep file says: embedder x prefix mode over one dataset."""

    retrieval: Name
    """Its name, and that of its results folder."""
    dataset: Annotated[str, Field(min_length=1)] = "personal60"
    """A folder seen from the sweep file, or the name of a dataset that comes with memeval."""
    embedders: Annotated[list[Annotated[EmbedderEntry, BeforeValidator(_entry)]], Field(min_length=1)]
    prefixes: Annotated[list[PrefixMode], Field(min_length=1)] = list(PREFIX_MODES)
    k: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=1)] = [1, 3, 5, 10]
    """Cuts of the metrics; as many ids are kept of each ranking as the largest."""
    min_score: float = 0.3
    """The cosine below which a design would recall nothing; for the false recalls."""
    python: str | None = None
    """A Python file, seen from the sweep file, that registers embedders of one's own."""

    _source: Path | None = PrivateAttr(default=None)

    @property
    def base(self) -> Path:
        """The folder that paths are seen from."""
        return self._source.parent if self._source else Path.cwd()


@dataclass(frozen=True, slots=True)
class RetrievalRun:
    """A finished run: its folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    def load(self) -> RetrievalFrames:
        """Its rows as frames."""
        return load_retrieval(self.folder)


@dataclass(slots=True)
class _Cell:
    embedder: str
    prefix: PrefixMode
    opened: PrefixedEmbedder | None = None
    unsupported: str = ""


def load_sweep(path: Path | str) -> RetrievalSweep:
    """Read a sweep file. Raises InputError with file and line of what is wrong."""
    path = Path(path)
    data, lines = read_yaml(path)
    sweep = checked(RetrievalSweep, data, path, lines)
    sweep._source = path.resolve()
    return sweep


def run_retrieval(
    sweep: RetrievalSweep | Path | str,
    out: Path | str | None = None,
    progress: Progress | None = None,
    *,
    cache: EmbeddingCache | Literal["default"] | None = "default",
    host: str | None = None,
) -> RetrievalRun:
    """Measure every embedder x prefix mode and write `retrieval.jsonl` and `retrieval.json` into `out`.

    `out` is by default `results/<name>`; both files appear whole at the end or not at all. Every embedder is
    opened before the first text is embedded, so a misspelt name costs nothing. `cache=None` keeps vectors for
    this run only. Raises InputError, HarnessError (an embedder of one's own), InfrastructureError.
    """
    sweep = sweep if isinstance(sweep, RetrievalSweep) else load_sweep(sweep)
    folder = Path(out) if out is not None else Path("results") / sweep.retrieval
    refuse_foreign(folder, sweep.retrieval)
    dataset = load_dataset(find_dataset(sweep.dataset, sweep.base))
    if sweep.python is not None:
        import_file(sweep.base / sweep.python)
    kept = EmbeddingCache(":memory:") if cache is None else cache
    cells = _open(sweep, kept, host)
    try:
        rows, described = _measure(sweep, dataset, cells, progress or (lambda done, total, cell: None))
    finally:
        for cell in cells:
            close = getattr(cell.opened.encoder, "close", None) if cell.opened else None
            if close is not None:
                close()
    manifest = write(folder, _about(sweep, dataset), described, rows)
    return RetrievalRun(folder, manifest)


def _open(sweep: RetrievalSweep, cache: EmbeddingCache | Literal["default"], host: str | None) -> list[_Cell]:
    cells: dict[tuple[str, str], _Cell] = {}
    for entry in sweep.embedders:
        for mode in [entry.prefix] if entry.prefix else sorted(set(sweep.prefixes), key=PREFIX_MODES.index):
            cell = _Cell(entry.label, mode)
            if (entry.label, mode) in cells:
                where = sweep._source or sweep.retrieval
                raise InputError(f"{where}: the embedder {entry.label} with {mode} is listed twice")
            try:
                cell.opened = open_embedder(entry.name, mode, entry.dims, cache, host)
            except UnsupportedPrefix as reason:
                cell.unsupported = str(reason)
            cells[entry.label, mode] = cell
    if not any(cell.opened for cell in cells.values()):
        reasons = "; ".join(dict.fromkeys(cell.unsupported for cell in cells.values()))
        raise InputError(f"nothing in the sweep {sweep.retrieval!r} can be measured: {reasons}")
    return list(cells.values())


def _measure(
    sweep: RetrievalSweep, dataset: Dataset, cells: list[_Cell], progress: Progress
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    grades = dataset.grades()
    rows: list[dict[str, Any]] = []
    described: list[dict[str, Any]] = []
    # Equal fingerprints are equal model, prefixes and length: such a cell's numbers are known without a look.
    measured: dict[tuple[str, str], str] = {}
    for done, cell in enumerate(cells):
        progress(done, len(cells), f"{cell.embedder} {cell.prefix}")
        found: list[dict[str, Any]] = []
        same_as = ""
        if cell.opened is not None:
            key = (cell.embedder, cell.opened.fingerprint)
            same_as = measured.get(key, "")
            if not same_as:
                measured[key] = cell.prefix
                found = _questions(sweep, dataset, grades, _scores(cell, dataset))
        named = {"embedder": cell.embedder, "prefix": cell.prefix}
        rows += [{**named, **row} for row in found]
        described.append({**named, "identical_to": same_as, "unsupported": cell.unsupported,
                          **_describe(cell.opened), **_summary(sweep, found)})  # fmt: skip
    progress(len(cells), len(cells), "")
    return rows, described


def _scores(cell: _Cell, dataset: Dataset) -> Floats:
    """float64[queries, documents]: cosines, all of them.

    Rounded to 6 places, which is what float32 vectors carry: BLAS may give two equal vectors dot products
    that differ in the last bit, by their place in the matrix, and such a tie would be broken by chance.
    """
    assert cell.opened is not None
    try:
        documents = cell.opened.embed([d.text for d in dataset.documents], "document")
        queries = cell.opened.embed([q.text for q in dataset.queries], "query")
    except MemevalError as error:
        error.args = (f"{cell.embedder}, prefix {cell.prefix}: {error}",)
        raise
    scores: Floats = queries.astype(np.float64) @ documents.astype(np.float64).T
    return scores.round(6)


def _questions(
    sweep: RetrievalSweep, dataset: Dataset, grades: Floats, scores: Floats
) -> list[dict[str, Any]]:
    ids = [document.id for document in dataset.documents]
    ranking = metrics.rank(scores, ids)
    ranked = metrics.ranked_grades(grades, ranking)
    cuts = sorted(set(sweep.k))
    values = {f"{name}@{k}": of(ranked, k) for name, of in metrics.METRICS.items() for k in cuts}
    rows = []
    for i, query in enumerate(dataset.queries):
        relevant = ranked[i] > 0
        rows.append({
            "query": query.id,
            "category": query.label,
            "text": query.text,
            "answerable": bool(relevant.any()),
            "relevant": [ids[d] for d in ranking[i][relevant]],
            "first_relevant": int(relevant.argmax()) + 1 if relevant.any() else None,
            "top": [ids[d] for d in ranking[i, : cuts[-1]]],
            "top_scores": [float(scores[i, d]) for d in ranking[i, : cuts[-1]]],
            "top_score": float(scores[i, ranking[i, 0]]),
            **{name: None if np.isnan(of[i]) else float(of[i]) for name, of in values.items()},
        })  # fmt: skip
    return rows


def _summary(sweep: RetrievalSweep, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A cell's means over the answerable questions, and how well its best score tells the others apart."""
    if not rows:
        return {}
    with_answer = [row for row in rows if row["answerable"]]
    tops = [[row["top_score"] for row in rows if row["answerable"] is flag] for flag in (True, False)]
    abstention = {
        "false_recall": metrics.false_recall(tops[1], sweep.min_score),
        "auroc": metrics.auroc(tops[0], tops[1]),
    }
    means = {name: float(np.mean([row[name] for row in with_answer])) for name in rows[0] if "@" in name}
    return {k: None if np.isnan(v) else v for k, v in (means | abstention).items()}


def _describe(embedder: PrefixedEmbedder | None) -> dict[str, Any]:
    if embedder is None:
        return {"registered": True}  # only an embedder of one's own can be without a mode
    document, query = (
        f"(written by the engine for a {text.strip(chr(0))})" if text.startswith("\0") else text
        for text in apply(embedder.prefixes, embedder.prefix)
    )
    return {
        "document_prefix": document,
        "query_prefix": query,
        "dim": embedder.dim,
        "registered": embedder.registered,
        "symmetric": embedder.symmetric,
        "digest": embedder.encoder.digest,
        "fingerprint": embedder.fingerprint,
        "encoded": embedder.encoded,
    }


def _about(sweep: RetrievalSweep, dataset: Dataset) -> dict[str, Any]:
    return {
        "retrieval": sweep.retrieval,
        "sweep": sweep.model_dump(mode="json"),
        "dataset": {
            "name": dataset.name,
            "digest": dataset.digest,
            "documents": len(dataset.documents),
            "queries": len(dataset.queries),
            "answerable": int((dataset.grades() > 0).any(axis=1).sum()),
        },
        "ranker": "similarity: exact cosine over all documents, rounded to 6 places",
        "ties": "score descending, then document id ascending",
    }
