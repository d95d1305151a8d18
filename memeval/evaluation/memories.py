"""A fresh memory for every trial: one store per user of its story, gone when the trial is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memeval.evaluation.plan import Cell, Plan
from memeval.evaluation.sweep import digest
from memeval.memory.base import MemoryStore
from memeval.memory.factory import Stores


class Memories:
    """The stores of a plan's trials, opened once an embedder; without `scratch` in temporary folders."""

    def __init__(self, planned: Plan, scratch: Path | None = None) -> None:
        self._plan, self._scratch = planned, scratch
        self._stores: dict[str, Stores] = {}

    def __enter__(self) -> Memories:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all stores."""
        for stores in self._stores.values():
            stores.close()

    @contextmanager
    def fresh(self, cell: Cell, namespace: str) -> Iterator[Callable[[str], MemoryStore]]:
        """A way to open each user's store, empty at first; all of them are dropped afterwards."""
        stores = self._stores_of(cell)
        open_now: dict[str, MemoryStore] = {}

        def open_store(user: str) -> MemoryStore:
            if user not in open_now:
                open_now[user] = stores.fresh(namespace, user)
            return open_now[user]

        try:
            yield open_store
        finally:
            stores.drop(namespace)

    def _stores_of(self, cell: Cell) -> Stores:
        name = cell.spec.embedder.label
        if name not in self._stores:
            folder = self._scratch / digest(name) if self._scratch else None
            self._stores[name] = Stores(self._plan.sweep.store, folder, self._plan.embedders[name])
        return self._stores[name]
