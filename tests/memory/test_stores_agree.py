"""Both stores, driven by the same random operations, tell the same."""

from __future__ import annotations

import itertools
import operator
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from storing import Tiny, record

from memeval.memory.base import Candidates
from memeval.memory.chroma import ChromaStore
from memeval.memory.chunking import pieces
from memeval.memory.factory import Stores
from memeval.memory.inmemory import InMemoryStore
from memeval.records import Where

IDS = st.sampled_from(["é", "x' OR 1=1", "a\x00b", *"abcdefghijkl"])
WORDS = ["red", "blue", "door", "doors", "NEAR", "AND", "NOT", "topic:x", "C++", "乌龙"]
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
LONG = st.lists(st.sampled_from([*WORDS, "x" * 300, " " * 700]), min_size=3, max_size=12).map(" ".join)
TEXTS = st.one_of(
    PHRASES,
    PHRASES,
    PHRASES,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(['"', "* OR *", "﷽ ﬁle", "e\u0301 \u202e", "", "\x00"]),
)
KINDS = st.sampled_from(["topic", "episodic", "note"])
TAGS = st.lists(st.sampled_from(["x", "y", "z"]), unique=True, max_size=2).map(tuple)
ORIGINS = st.sampled_from(["tool", "hook"])
FIELDS = st.dictionaries(
    st.sampled_from(["topic", "n"]), st.sampled_from(["", "user.name", 1, True, 0.5]), max_size=2
)
SCORES = st.none() | st.floats(-3, 10)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS, "kind": KINDS, "tags": TAGS, "origin": ORIGINS, "fields": FIELDS, "critic": SCORES,
    },
)  # fmt: skip
BY_PASSAGE = st.one_of(
    st.builds(dict, text=LONG, by_passage=st.just(True)),
    st.builds(dict, text=TEXTS, by_passage=st.booleans()),
)
CHANGES = st.one_of(CHANGES, CHANGES, st.builds(operator.or_, CHANGES, BY_PASSAGE))
WHERES = st.builds(
    Where,
    kinds=st.lists(KINDS, unique=True, max_size=2).map(tuple),
    tags=TAGS,
    tag_match=st.sampled_from(["any", "all"]),
    fields=FIELDS,
    origin=st.none() | ORIGINS,
    exclude=st.frozensets(IDS, max_size=2),
) | st.just(Where())
SERIAL = itertools.count()


class Both(RuleBasedStateMachine):
    stores: Stores

    @initialize(kept=st.lists(st.tuples(IDS, TEXTS, CHANGES), max_size=16))
    def open(self, kept: list[tuple[str, str, dict[str, Any]]]) -> None:
        self.namespace = f"case {next(SERIAL)}"
        self.exact = InMemoryStore("ann", Tiny())
        self.chroma = self.stores.fresh(self.namespace, "ann")
        assert isinstance(self.chroma, ChromaStore)
        self.saved = tuple(replace(record(name, text, 1), **changes) for name, text, changes in kept)
        self.restore()

    def teardown(self) -> None:
        self.stores.drop(self.namespace)
        self.exact.close()

    def same(self, call: Callable[[Any], Any]) -> Any:
        left, right = call(self.exact), call(self.chroma)
        assert left == right
        return left

    @rule(name=IDS, text=TEXTS, minute=st.integers(0, 3), changes=CHANGES)
    def put(self, name: str, text: str, minute: int, changes: dict[str, Any]) -> None:
        given = replace(record(name, text, minute), **changes)
        self.same(lambda store: store.put(given))

    @rule(name=IDS, changes=CHANGES)
    def patch(self, name: str, changes: dict[str, Any]) -> None:
        self.same(lambda store: store.patch(name, **changes))

    @rule(name=IDS)
    def delete(self, name: str) -> None:
        self.same(lambda store: store.delete(name))

    @rule(name=IDS)
    def get(self, name: str) -> None:
        self.same(lambda store: store.get(name))

    @rule()
    def snapshot(self) -> None:
        self.saved = self.same(lambda store: store.snapshot())

    @rule()
    def restore(self) -> None:
        self.same(lambda store: store.restore(self.saved))

    @rule(where=WHERES, limit=st.none() | st.integers(0, 3))
    def find(self, where: Where, limit: int | None) -> None:
        self.same(lambda store: store.find(where, limit))
        self.same(lambda store: store.count(where))

    @rule(query=TEXTS, k=st.integers(1, 3))
    def search(self, query: str, k: int) -> None:
        self.candidates(query, Where(), k, True)

    @rule(query=PHRASES, where=WHERES, k=st.integers(0, 9), words=st.booleans() | PHRASES)
    def candidates(self, query: str, where: Where, k: int, words: bool | str) -> None:
        left = self.exact.candidates(query, where, k, words=words)
        right = self.chroma.candidates(query, where, k, words=words)
        # Where several tie for the last place, Chroma's index may know another of them: records are compared
        # by what ranks them. The scores of the vector leg are the same in every case.
        near = [np.sort(found.cosine[found.cosine_rank > 0]) for found in (left, right)]
        np.testing.assert_allclose(near[0], near[1], atol=2e-6)
        worded = [
            {r.id: (int(rank), float(score)) for r, rank, score in
             zip(found.records, found.keyword_rank, found.keyword, strict=True) if rank}
            for found in (left, right)
        ]  # fmt: skip
        assert worded[0].keys() == worded[1].keys()
        for name, (rank, score) in worded[0].items():
            assert worded[1][name][0] == rank
            np.testing.assert_allclose(worded[1][name][1], score, rtol=1e-9)
        scores = {r.id: c for r, c in zip(left.records, left.cosine.tolist(), strict=True)}
        for r, cosine in zip(right.records, right.cosine.tolist(), strict=True):
            assert where(r)
            assert r == self.exact.get(r.id)
            assert abs(scores.get(r.id, near[0][0] if len(near[0]) else cosine) - cosine) <= 2e-6
        for found in (left, right):
            self.passages_are_the_nearest(found, query)
        if k >= self.exact.count(where):
            assert {r.id for r in left.records} == {r.id for r in right.records}
            words_of = [
                {r.id: round(float(s), 9) for r, s in zip(f.records, np.nan_to_num(f.keyword), strict=True)}
                for f in (left, right)
            ]
            assert words_of[0] == words_of[1]

    def passages_are_the_nearest(self, found: Candidates, query: str) -> None:
        for at, r in enumerate(found.records):
            parts, best = pieces(r), found.hit(at, 0.0).passage
            assert best in parts if len(parts) > 1 else best == ""
            [vector] = Tiny().embed([query], "query")
            cosine = Tiny().embed(parts) @ vector
            assert abs(cosine.max() - found.cosine[at]) <= 2e-6
            assert abs(cosine[parts.index(best or parts[0])] - found.cosine[at]) <= 2e-6

    @invariant()
    def equally_many(self) -> None:
        if hasattr(self, "exact"):
            self.same(lambda store: store.count())


def test_both_stores_tell_the_same_after_any_operations() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Both.stores = Stores("chroma", folder, Tiny())
        try:
            run_state_machine_as_test(
                Both,
                settings=settings(
                    max_examples=30, stateful_step_count=12, deadline=None, derandomize=True,
                    suppress_health_check=list(HealthCheck), database=None,
                ),
            )  # fmt: skip
        finally:
            Both.stores.close()
