"""The numbers behind the retrieval figures: one row for each embedder and prefix mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memeval.analysis.intervals import means
from memeval.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

_ABOUT = (
    "embedder",
    "prefix",
    "document_prefix",
    "query_prefix",
    "dim",
    "registered",
    "identical_to",
    "unsupported",
)
PREFIXES = ("card", "none", "swapped", "query-only", "document-only", "wrong")


def metrics(queries: pd.DataFrame) -> list[str]:
    """The columns that are retrieval metrics: a name, an @ and a cut, such as `ndcg@10`."""
    return [name for name in queries.columns if "@" in name]


def quality(
    queries: pd.DataFrame, cells: pd.DataFrame, *, value: str = "ndcg@10", level: float = 0.95
) -> pd.DataFrame:
    """One row a cell: its mean over the answerable queries with a bootstrap interval, or why it has none.

    A cell that is `identical_to` another by construction keeps no number of its own: two equal bars would
    look like a finding.
    """
    if value not in metrics(queries):
        raise InputError(f"No metric is called {value!r}{nearest(value, metrics(queries))}.")
    scores = means(queries, ["embedder", "prefix"], value=value, level=level)
    table = cells[[name for name in _ABOUT if name in cells]].merge(
        scores, on=["embedder", "prefix"], how="left"
    )
    named = table["identical_to"].fillna("").astype(str) != ""
    table[["mean", "lo", "hi"]] = table[["mean", "lo", "hi"]].mask(named)
    rank = table["prefix"].map({name: i for i, name in enumerate(PREFIXES)}).fillna(len(PREFIXES))
    best = table.groupby("embedder")["mean"].transform("max")
    table = table.assign(_best=best, _rank=rank, metric=value)
    table = table.sort_values(
        ["_best", "embedder", "_rank"], ascending=[False, True, True], ignore_index=True
    )
    return table.drop(columns=["_best", "_rank"])


def scores(queries: pd.DataFrame, *, prefix: str = "card") -> pd.DataFrame:
    """The best score of every query, and whether anything in the store answers it."""
    if prefix not in set(queries["prefix"]):
        raise InputError(f"No prefix mode {prefix!r} was measured{nearest(prefix, set(queries['prefix']))}.")
    columns = ["embedder", "query", "top_score", "answerable"]
    return queries.loc[queries["prefix"] == prefix, columns].reset_index(drop=True)


def abstention(cells: pd.DataFrame) -> pd.DataFrame:
    """How well the best score tells questions with an answer from those without (`auroc`; .5 is chance), and
    the share of unanswerable questions that get a hit above the sweep's threshold (`false_recall`)."""
    columns = [name for name in ("embedder", "prefix", "auroc", "false_recall") if name in cells]
    measured = cells[columns].dropna(subset=columns[2:], how="all")
    return measured.sort_values(columns[2:], ascending=False, ignore_index=True) if columns[2:] else measured


def every_metric(queries: pd.DataFrame) -> pd.DataFrame:
    """The means of all metrics over the answerable queries, a row for each embedder and prefix mode."""
    names = metrics(queries)
    table = queries.groupby(["embedder", "prefix"], sort=False, observed=True)[names].mean().reset_index()
    return table.sort_values(names[-1], ascending=False, ignore_index=True)
