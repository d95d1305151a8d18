"""Public memory benchmarks as stories and as retrieval sets: `memeval scenarios import`."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from memeval.errors import InputError, nearest
from memeval.scenarios.importers import about
from memeval.scenarios.importers import folder as folders
from memeval.scenarios.importers.about import Row
from memeval.scenarios.importers.base import Options, Source, Tally, choose, slug
from memeval.scenarios.importers.benchmarks import BENCHMARKS, Benchmark
from memeval.scenarios.importers.question import DOUBTFUL, Question

__all__ = ["BENCHMARKS", "Imported", "Options", "import_benchmark"]

TOO_LARGE = "the story is larger than a story file may be"
NO_RELEVANT = "no question of its corpus has a relevant document"


@dataclass(frozen=True, slots=True)
class Imported:
    """A finished import: its folder, its retrieval sweeps, and every count."""

    benchmark: Benchmark
    folder: Path
    sweeps: tuple[Path, ...]
    counts: tuple[Row, ...]


def import_benchmark(
    name: str, path: Path | str, out: Path | str | None = None, options: Options = Options()  # noqa: B008
) -> Imported:  # fmt: skip
    """Turn a benchmark's data into a folder of stories and retrieval sets, by default `imported/<name>`.

    An earlier, untouched import of the same benchmark in that folder is replaced. The same data and options
    give the same bytes. Raises InputError for data that is not of the benchmark, and for a folder that holds
    anything else; then nothing is written.
    """
    if name not in BENCHMARKS:
        raise InputError(f"there is no importer {name!r}{nearest(name, BENCHMARKS)}")
    benchmark, path = BENCHMARKS[name], Path(path)
    out = Path(out) if out is not None else Path("imported") / name
    folders.refuse_foreign(out, benchmark)
    tally = Tally(benchmark)
    module = importlib.import_module(f"{__name__}.{name}")
    source: Source = module.read(path, options, tally)
    chosen = choose(source.questions, options.limit)
    with folders.new_folder(out) as fresh:
        made, sizes = _write_stories(fresh, source, chosen, tally)
        sets, documents = _write_datasets(fresh, source, chosen, benchmark)
        if not made and not sets:
            reasons = "; ".join(dict.fromkeys(q.no_story or q.no_query for q in source.questions))
            raise InputError(f"{path}: none of {len(source.questions)} questions can be imported: {reasons}")
        sizes.update({"retrieval sets": len(sets), "documents to search": documents})
        sizes["questions for retrieval"] = sum(not question.no_query for question in chosen)
        counts = about.counts(source, chosen, sizes, tally)
        folders.keep_licence(path, fresh)
        page, record = about.readme(benchmark, sets, counts), about.record(benchmark, options, counts)
        folders.write_about(fresh, page, record)
    sweeps = tuple(out / "retrieval" / f"{one}.yaml" for one in sets)
    return Imported(benchmark, out, sweeps, tuple(counts))


def _write_stories(
    fresh: Path, source: Source, chosen: list[Question], tally: Tally
) -> tuple[int, dict[str, int]]:
    files, sizes = folders.StoryFiles(fresh, tally.benchmark), Counter[str]()
    families: set[str] = set()
    wanted = [question for question in chosen if not question.no_story]
    written: set[str] = set()
    for question, scenario in source.stories(wanted):
        if files.add(question, scenario):
            written.add(question.id)
            families.add(question.family)
            sizes["model turns, one run of each story"] += sum(len(s.turns) for s in scenario.sessions)
            sizes["records that stand in memory"] += sum(len(s.given) for s in scenario.sessions)
    for question in wanted:
        if question.id not in written:
            question.no_story = TOO_LARGE
    doubtful = sum(q.id in written and not DOUBTFUL.isdisjoint(q.flaws) for q in wanted)
    told = {"stories": len(written), "of them with a doubtful verdict": doubtful, "families": len(families)}
    return len(written), {**told, **sizes}


def _write_datasets(
    fresh: Path, source: Source, chosen: list[Question], benchmark: Benchmark
) -> tuple[list[str], int]:
    names: list[str] = []
    documents = 0
    for dataset, corpus in source.documents.items():
        queries = [q for q in chosen if q.dataset == dataset and not q.no_query]
        if not any(q.relevant and not q.unanswerable for q in queries):
            for question in queries:
                question.no_query = NO_RELEVANT
            continue
        name = slug(f"{benchmark.name}-{dataset.removeprefix(f'{benchmark.name}-')}")
        if name in names:
            name = f"{name[:76]}-{len(names)}"
        folders.write_dataset(fresh, benchmark, name, corpus, queries)
        names.append(name)
        documents += len(corpus)
    return names, documents
