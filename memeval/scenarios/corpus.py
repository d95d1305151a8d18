"""Stories as a collection: how many of what, which texts are alike, what is not asked, questions alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memeval.errors import InputError
from memeval.messages import READS, WRITES
from memeval.scenarios.lint import Finding, plain, turns
from memeval.scenarios.loader import NOT_STORIES, read_scenarios
from memeval.scenarios.schema import SAVE_TOOL, Fact, Scenario, Store

READ = 300
"""Characters of a text that are compared: few questions are longer, and a pasted document costs no more."""


@dataclass(slots=True)
class Count:
    """How many stories a folder holds, and of what. `dev` and `test` count families, intents count turns."""

    folder: str
    stories: int = 0
    families: int = 0
    dev: int = 0
    test: int = 0
    turns: int = 0
    intents: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """A user's text and where it stands."""

    scenario: str
    family: str
    file: Path | None
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts of different families and how alike they are, from 0 to 1."""

    likeness: float
    first: Said
    second: Said


@dataclass(frozen=True, slots=True)
class Question:
    """A question that asks for facts, as a story of its own in which nothing was told before."""

    story: Scenario
    facts: dict[str, Fact]
    places: tuple[Said, ...]
    """Where it is asked; more than one where stories of a family ask the same."""


def read_all(paths: Sequence[Path]) -> tuple[list[Scenario], list[str]]:
    """The stories of files and folders, and a sentence for each file or id that is wrong.

    Raises InputError for a path that is not there, or a folder without a story file.
    """
    scenarios: list[Scenario] = []
    errors: list[str] = []
    places: dict[str, str] = {}
    for file in dict.fromkeys(file for path in paths for file in _files(path)):
        try:
            found = read_scenarios(file)
        except InputError as error:
            errors.append(str(error))
            continue
        if not found:
            errors.append(f"{file}:1: no scenario in it")
        for scenario in found:
            place = f"{file}:{scenario.line('scenario')}"
            if (first := places.setdefault(scenario.scenario, place)) != place:
                errors.append(
                    f"{place}: scenario {scenario.scenario!r} stands twice, first at {first};"
                    " give one of them another id"
                )
            else:
                scenarios.append(scenario)
    return scenarios, errors


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix in (".yaml", ".yml"))
        files = [p for p in found if NOT_STORIES.isdisjoint(p.relative_to(path).parts)]
        if not files:
            raise InputError(f"{path}: no story file (.yaml) in it")
        yield from files
    elif path.exists():
        yield path
    else:
        raise InputError(f"{path}: no such file or folder")


def counts(scenarios: Sequence[Scenario]) -> list[Count]:
    """One count a folder, in the order of their names, and one of all (`folder` is empty)."""
    folders = [story.source.parent for story in scenarios if story.source]
    top = Path(os.path.commonpath(folders)) if folders else Path()
    groups: dict[str, list[Scenario]] = {}
    for story in scenarios:
        place = story.source.parent.relative_to(top).as_posix() if story.source else "."
        groups.setdefault(top.name if place == "." else place, []).append(story)
    return [_count(name, groups[name]) for name in sorted(groups)] + [_count("", scenarios)]


def _count(folder: str, stories: Sequence[Scenario]) -> Count:
    splits = Counter({story.family: story.split for story in stories}.values())
    said = [turn for story in stories for _, turn in turns(story)]
    return Count(
        folder, len(stories), splits.total(), splits["dev"], splits["test"], len(said),
        dict(Counter(turn.expect.intent for turn in said if turn.expect).most_common()),
        dict(Counter(tag for story in stories for tag in story.tags).most_common()),
    )  # fmt: skip


def nearest_pairs(scenarios: Sequence[Scenario], k: int = 5) -> list[Pair]:
    """The `k` most alike texts of users in different families, the most alike first, one a pair of families.

    Alike by the Jaccard index of their sets of three-letter sequences: of all sequences in either text, the
    share that both have. Case, accents' encoding and blanks do not count; equal texts are findings of their
    own (`lint`) and left out. Texts that share a pattern stand out: "Please remember that my ... is ...".
    """
    texts = list({(said.family, plain(said.text)): said for said in _said(scenarios)}.values())
    if k < 1 or len(texts) < 2:
        return []
    words = [plain(said.text) for said in texts]
    families = np.unique([said.family for said in texts], return_inverse=True)[1]
    found: dict[tuple[int, int], tuple[float, int, int]] = {}
    floor = 0.0  # what a pair must exceed to be among the k best
    for row, likeness in enumerate(_likeness([text[:READ] for text in words])):
        likeness[families[:row] == families[row]] = 0
        for other in np.argsort(-likeness, kind="stable").tolist():
            if (near := float(likeness[other])) <= floor:
                break
            one, two = sorted((int(families[row]), int(families[other])))
            if words[row] != words[other] and near > found.get((one, two), (0.0,))[0]:
                found[one, two] = (near, other, row)
        floor = sorted(near for near, *_ in found.values())[-k] if len(found) >= k else 0.0
    best = sorted(found.values(), key=lambda pair: (-pair[0], *pair[1:]))[:k]
    return [Pair(round(near, 4), texts[one], texts[two]) for near, one, two in best]


def _likeness(texts: Sequence[str]) -> Iterator[NDArray[np.float64]]:
    """For each text the Jaccard index of its trigrams with those of every text before it."""
    grams: list[set[str]] = [{text[at : at + 3] for at in range(max(1, len(text) - 2))} for text in texts]
    numbers = {gram: number for number, gram in enumerate(sorted(set().union(*grams)))}
    holders: list[list[int]] = [[] for _ in numbers]
    for row, own in enumerate(grams):
        for gram in own:
            holders[numbers[gram]].append(row)
    rows = [np.array(held) for held in holders]
    sizes = np.array([len(own) for own in grams])
    for row, own in enumerate(grams):
        shared = np.bincount(np.concatenate([rows[numbers[gram]] for gram in own]))[:row]
        yield shared / (sizes[:row] + sizes[row] - shared)


def _said(scenarios: Sequence[Scenario]) -> Iterator[Said]:
    for story in scenarios:
        for place, turn in turns(story):
            yield said_at(story, (*place, "user"), turn.user)


def said_at(story: Scenario, place: tuple[str | int, ...], text: str) -> Said:
    """A text of a story with its file and line."""
    return Said(story.scenario, story.family, story.source, story.line(*place), text)


def never_asked(scenarios: Sequence[Scenario]) -> list[Finding]:
    """Facts that are to be kept and that no later turn asks for: whether keeping them helps stays unseen.

    Nothing is wrong with such a story. A fact that a later turn corrects or keeps out of the answer counts
    as asked for.
    """
    found = []
    for story in scenarios:
        kept: dict[str, int] = {}
        asked: dict[str, int] = {}
        for at, turn in enumerate(turn for _, turn in turns(story)):
            if (expect := turn.expect) is None:
                continue
            store, writes = expect.store or Store(), expect.intent in WRITES
            asks = expect.facts if expect.intent in READS | {"forget"} else []
            asks = asks + ([] if writes else expect.answer.states)
            asked |= dict.fromkeys(asks + expect.answer.avoids + store.lacks, at)
            for name in store.holds + (expect.facts if writes else []):
                kept.setdefault(name, at)
        found += [
            Finding(story.scenario, story.source, story.line("facts", name), "never-asked",
                    f"the fact {name!r} is to be kept, and no later turn asks for it")
            for name, at in kept.items() if asked.get(name, -1) < at
        ]  # fmt: skip
    return found


def asked_alone(scenarios: Sequence[Scenario]) -> list[Question]:
    """Every question whose answer must state a fact, cut out of its story; equal ones of a family once.

    A model that answers one of them rightly knows or guesses the value, since it was told nothing. Each
    keeps the time, the user, the channel and the model options of its session.
    """
    found: dict[Any, Question] = {}
    for story in scenarios:
        for place, turn in turns(story):
            if turn.expect is None or not turn.expect.answer.states or SAVE_TOOL in turn.user:
                continue
            facts = {name: story.facts[name] for name in turn.expect.answer.states}
            session = story.sessions[int(place[1])]
            said = said_at(story, (*place, "user"), turn.user)
            values = tuple((tuple(fact.values), fact.guessable) for fact in facts.values())
            key = (story.family, plain(turn.user), values, str(session.options))
            if (known := found.get(key)) is not None:
                found[key] = Question(known.story, known.facts, (*known.places, said))
                continue
            alone = session.model_copy(update={"given": [], "turns": [turn.model_copy(update={"filler": 0})]})
            found[key] = Question(story.model_copy(update={"sessions": [alone]}), facts, (said,))
    return list(found.values())
