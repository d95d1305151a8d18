"""The folder of an import: written beside its place and moved there whole, or not at all.

| file | holds |
|---|---|
| `README.md` | where it is from, licence, how it was made, counts |
| `import.json` | the same for programs, and a hash of every file |
| `schema.json` | for editors |
| `LICENSE` | where one lies beside the data |
| `stories/sound/<kind>/*.yaml` | stories, by the type of their question |
| `stories/doubtful/<kind>/*.yaml` | the same, those whose verdict is to be doubted |
| `retrieval/<name>/` | `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`, `ORIGIN` |
| `retrieval/<name>.yaml` | a sweep over it |
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memeval.errors import InfrastructureError, InputError
from memeval.scenarios.importers.base import Document
from memeval.scenarios.importers.benchmarks import Benchmark
from memeval.scenarios.importers.question import DOUBTFUL, Question
from memeval.scenarios.importers.yamltext import document
from memeval.scenarios.schema import Scenario
from memeval.yamlfile import MAX_BYTES

MARKER = "import.json"


def refuse_foreign(out: Path, benchmark: Benchmark) -> None:
    """Raise InputError unless `out` may be written: not there, empty, or an earlier import left as it was."""
    at = next((place for place in (out, *out.parents) if place.exists()), Path())
    if not at.is_dir():
        raise InputError(f"{at} is a file; --out needs a folder")
    if not out.exists() or not any(out.iterdir()):
        return
    again = "choose another --out, or move it away"
    try:
        earlier = json.loads((out / MARKER).read_text(encoding="utf-8"))
        name, files = str(earlier["import"]), dict(earlier["files"])
    except FileNotFoundError:
        raise InputError(f"{out} is not empty and holds no earlier import; {again}") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{out / MARKER}: not the record of an import ({error}); {again}") from None
    if name != benchmark.name:
        raise InputError(f"{out} holds an import of {name}, not of {benchmark.name}; {again}")
    there = {str(p.relative_to(out)): p for p in sorted(out.rglob("*")) if not p.is_dir()}
    for path, file in there.items():
        if path != MARKER and files.get(path) != _digest(file):
            what = "was changed since it was imported" if path in files else "was not imported"
            raise InputError(f"{file} {what}, and importing again would remove it; {again}")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to write into, which takes the place of `out` if nothing goes wrong, else is removed."""
    out = out.resolve()
    stamp = f"{os.getpid()}-{secrets.token_hex(3)}"
    fresh, old = (out.with_name(f".{out.name}.{what}-{stamp}") for what in ("importing", "replaced"))
    try:
        fresh.mkdir(parents=True)
        yield fresh
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    except OSError as error:
        raise InfrastructureError(f"{out}: the import cannot be written: {error.strerror}") from error
    finally:
        if old.exists() and not out.exists():
            old.rename(out)
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)


class StoryFiles:
    """Puts stories into files of their kind and family, each small enough to be read as a story file."""

    def __init__(self, folder: Path, benchmark: Benchmark) -> None:
        self.folder, self.head = folder, _head(benchmark, "../../../schema.json")
        self._files: dict[tuple[str, str, str], tuple[int, int]] = {}

    def add(self, question: Question, scenario: Scenario) -> bool:
        """Write a story; False if it is larger than a story file may be."""
        text = document(scenario)
        size = len(text.encode())
        if size + len(self.head.encode()) > MAX_BYTES:
            return False
        trust = "sound" if DOUBTFUL.isdisjoint(question.flaws) else "doubtful"
        place = trust, question.kind, question.family
        number, used = self._files.get(place, (1, 0))
        if used and used + size + 4 > MAX_BYTES:
            number, used = number + 1, 0
        name = question.family if number == 1 else f"{question.family}-{number}"
        path = self.folder.joinpath("stories", trust, question.kind, f"{name}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"---\n{text}" if used else self.head + text
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
        self._files[place] = number, used + len(text.encode())
        return True


def write_dataset(
    folder: Path, benchmark: Benchmark, name: str, documents: dict[str, Document], queries: Sequence[Question]
) -> None:
    """A corpus with its questions, in the three files that `memeval retrieval` reads, and a sweep over it."""
    home = folder / "retrieval" / name
    home.mkdir(parents=True)
    _write_lines(
        home / "corpus.jsonl",
        ({"id": key, "kind": one.kind, "text": one.text} for key, one in documents.items()),
    )
    _write_lines(
        home / "queries.jsonl",
        (
            {"id": q.id, "category": "unanswerable" if q.unanswerable else q.kind, "text": q.text}
            for q in queries
        ),
    )
    judged = [f"{q.id}\t0\t{key}\t1\n" for q in queries if not q.unanswerable for key in q.relevant]
    _write(home / "qrels.tsv", "".join(judged))
    _write(home / "ORIGIN", f"{benchmark.title}, {benchmark.origin}, licence {benchmark.licence}\n")
    sweep = f'retrieval: {name}\ndataset: {name}\nembedders: ["bundled:minilm", hash]\n'
    _write(home.with_suffix(".yaml"), _head(benchmark) + sweep)


def write_about(folder: Path, readme: str, about: dict[str, Any]) -> None:
    """The pages about an import; last, because one of them lists all files."""
    from memeval.scenarios.loader import schema_json

    _write(folder / "README.md", readme)
    _write(folder / "schema.json", schema_json())
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    digests = {path.relative_to(folder).as_posix(): _digest(path) for path in files}
    text = json.dumps({**about, "files": digests}, indent=1, ensure_ascii=False)
    _write(folder / MARKER, text + "\n")


def keep_licence(source: Path, folder: Path) -> None:
    """Copy the licence that lies beside the data, if one does."""
    home = source if source.is_dir() else source.parent
    for name in ("LICENSE", "LICENSE.txt", "LICENSE.md"):
        if (home / name).is_file():
            shutil.copyfile(home / name, folder / name)
            return


def _head(benchmark: Benchmark, schema: str = "") -> str:
    """The comment at the top of a file."""
    editor = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    return (
        f"{editor}# From {benchmark.title} ({benchmark.origin}), licence {benchmark.licence}.\n"
        f"# Changed into this form by `memeval scenarios import {benchmark.name}`.\n"
    )


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode())


def _write_lines(path: Path, rows: Iterator[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
