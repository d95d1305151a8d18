"""Shared by all tests: nothing reads a person's settings or cache, nothing needs a server."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

# before numpy: two BLAS threads on a busy two-core machine embed five times slower than one (8.7 s, 1.7 s)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest


@pytest.fixture(autouse=True)
def _no_personal_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEMEVAL_CHROMA_PATH", "MEMEVAL_COLLECTION", "MEMEVAL_EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMEVAL_CACHE", str(tmp_path / "embeddings.sqlite"))
    return


@pytest.fixture(autouse=True)
def _what_a_test_registers_is_gone_after_it() -> Iterator[None]:
    homes = (
        ("memeval.designs.registry", "_DESIGNS"),
        ("memeval.models.registry", "_registered"),
        ("memeval.embedding.registry", "_own"),
    )
    before = {home: dict(getattr(sys.modules[home], name)) for home, name in homes if home in sys.modules}
    yield
    for home, name in homes:
        if home in before:
            known = getattr(sys.modules[home], name)
            known.clear()
            known.update(before[home])
