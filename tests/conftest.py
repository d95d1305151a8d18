"""Shared by all tests: nothing reads a person's settings or cache, nothing needs a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _no_personal_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("MEMEVAL_CHROMA_PATH", "MEMEVAL_COLLECTION", "MEMEVAL_EMBEDDING_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MEMEVAL_CACHE", str(tmp_path / "embeddings.sqlite"))
    yield
