"""What importers share: what a person may choose, what they make of a file, and the count of all of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memeval.scenarios.importers.benchmarks import Benchmark
from memeval.scenarios.importers.question import Question
from memeval.scenarios.schema import Scenario

_TAKEN = TypeVar("_TAKEN")


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose. `sessions` is how many past sessions stand in memory, 0 all, None as fits."""

    limit: int | None = None
    given: bool = False
    sessions: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text that retrieval finds, under its id in a corpus."""

    text: str
    kind: str


@dataclass(slots=True)
class Source:
    """What an importer made of a file. `stories(chosen)` gives their stories, in the order of the file."""

    questions: list[Question]
    documents: dict[str, dict[str, Document]]
    stories: Callable[[Sequence[Question]], Iterator[tuple[Question, Scenario]]]


@dataclass(slots=True)
class Tally:
    """Counts of an import, in the order in which they are told."""

    benchmark: Benchmark
    notes: Counter[str] = field(default_factory=Counter)
    repaired: int = 0
    _slugs: set[str] = field(default_factory=set)

    def note(self, what: str, count: int = 1) -> None:
        """Count something a person should know of."""
        self.notes[what] += count

    def name(self, text: str, *, unique: bool = True) -> str:
        """`text` as the id of a story or family, prefixed with the benchmark; a malformed one is repaired."""
        made = slug(text)
        if made != text.lower() and unique:
            self.repaired += 1
        found = slug(f"{self.benchmark.name}-{made}")
        if not unique:
            return found
        count, first = 1, found
        while found in self._slugs:
            count += 1
            found = f"{first[:74]}-{count}"
        if count > 1:
            self.note("an id that stands twice, told apart by a number")
        self._slugs.add(found)
        return found


def slug(text: str) -> str:
    """Text as a name: lower case, letters, digits, `.`, `_`, `-`, 80 signs at most."""
    made = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return made[:80].rstrip("-._") or "x"


def choose(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """At most `limit` questions, spread over families and kinds; those that make a story come first.

    A file is often sorted by kind, and a family is the unit of every statistic: the first N of a file would
    be N of one kind, or of one family.
    """
    usable = [question for question in questions if not (question.no_story and question.no_query)]
    if limit is None or limit >= len(usable):
        return usable
    families: dict[str, dict[str, list[Question]]] = {}
    for question in usable:
        families.setdefault(question.family, {}).setdefault(question.kind, []).append(question)
    seen: Counter[tuple[bool, int, str]] = Counter()
    ranked: list[tuple[bool, int, int, int, Question]] = []
    for place, kinds in enumerate(families.values()):
        for told in (False, True):
            lists = [[q for q in found if bool(q.no_story) is told] for found in kinds.values()]
            start = place % len(lists)
            for turn, question in enumerate(_by_turns(lists[start:] + lists[:start])):
                key = (told, turn, question.kind)
                ranked.append((told, turn, seen[key], question.at, question))
                seen[key] += 1
    ranked.sort(key=lambda entry: entry[:4])
    return sorted((entry[4] for entry in ranked[:limit]), key=lambda question: question.at)


def _by_turns(lists: Sequence[Sequence[_TAKEN]]) -> Iterator[_TAKEN]:
    for turn in range(max(map(len, lists), default=0)):
        yield from (items[turn] for items in lists if turn < len(items))


def short(text: str, width: int = 120) -> str:
    """Text as one line of at most `width` signs."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"
