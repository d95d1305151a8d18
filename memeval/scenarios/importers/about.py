"""What is told about an import: its counts, as a page for people and as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memeval.scenarios.importers.base import Options, Source, Tally
from memeval.scenarios.importers.benchmarks import Benchmark
from memeval.scenarios.importers.question import DOUBTFUL, FLAWS, Question

FORMAT = 1
"""Version of what the same file becomes; it stands in `import.json`."""

Row = tuple[str, str, int]
"""A count: its group (read, made, left out, flaw, note), what was counted, and how many."""


def counts(source: Source, chosen: Sequence[Question], sizes: Mapping[str, int], tally: Tally) -> list[Row]:
    """Every count of an import; what was read is what was made and what was left out."""
    taken = {question.id for question in chosen}
    fit = [q for q in source.questions if not (q.no_story and q.no_query)]
    told = [q for q in source.questions if q.id in taken or (q.no_story and q.no_query)]
    no_story = Counter(question.no_story for question in told if question.no_story)
    no_query = Counter(question.no_query for question in told if question.no_query)
    flaws = Counter(flaw for question in chosen for flaw in question.flaws)
    rows: list[Row] = [("read", "questions", len(source.questions))]
    rows += [("made", what, count) for what, count in sizes.items()]
    if len(fit) > sum(q.id in taken for q in fit):
        rows.append(("left out", "by --limit", len(fit) - sum(q.id in taken for q in fit)))
    rows += [("left out", f"no story: {why}", count) for why, count in no_story.most_common()]
    rows += [("left out", f"not in retrieval: {why}", count) for why, count in no_query.most_common()]
    rows += [("flaw", f"{name}: {FLAWS[name]}", count) for name, count in flaws.most_common()]
    if tally.repaired:
        rows.append(("note", "a malformed id, repaired", tally.repaired))
    return rows + [("note", what, count) for what, count in tally.notes.most_common() if count]


def record(benchmark: Benchmark, options: Options, counts: Sequence[Row]) -> dict[str, Any]:
    """An import as data, for `import.json`."""
    return {
        "import": benchmark.name,
        "format": FORMAT,
        "origin": benchmark.origin,
        "licence": benchmark.licence,
        "options": asdict(options),
        "counts": [list(row) for row in counts],
    }


def readme(benchmark: Benchmark, sets: Sequence[str], counts: Sequence[Row]) -> str:
    """An import as a page for people; the origin, the licence and that it was changed stand on it."""
    table = "".join(f"| {group} | {what.replace('|', '/')} | {count:,} |\n" for group, what, count in counts)
    sweeps = "".join(f"    memeval retrieval retrieval/{name}.yaml\n" for name in sets[:3])
    return f"""# {benchmark.title}

Origin: {benchmark.origin}
Licence: {benchmark.licence}

Changed into this form by `memeval scenarios import {benchmark.name}`. {benchmark.how}

A story is a question, a family what shares its facts. Tags are the benchmark, the question's type, and what
is known to be wrong with it, by the names in the table. `stories/sound` and `stories/doubtful` hold a folder
for each type; doubtful are {" and ".join(sorted(DOUBTFUL))}: a right reply may fail, or a guess may pass. An
answer is looked for in the reply word for word, so questions whose answer nobody gives in the same words are
no stories; they are questions for retrieval all the same.

    memeval scenarios validate .
{sweeps}
In a sweep: `scenarios: [<this folder>/stories/sound]`, or any other folder or file.

|  | what | count |
|---|---|---:|
{table}"""
