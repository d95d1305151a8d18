"""BFCL v4 memory: a user chats over some nine sessions, and questions ask for what was said in passing.

How it becomes stories, and why:

- The sessions hold the user's turns alone, so they can be told live, as the benchmark does: each model and
  design decides for itself what to keep. The benchmark tells all sessions once and asks all questions of what
  was kept; a story here tells the session that holds the answer and asks one question in a new one, which is
  13 model turns in place of 109. `--sessions 0` tells them all.
- With `--given` nothing is told live: every turn of the sessions stands in memory, word for word, and one
  question is asked. That compares finding and answering alone, for a thirteenth of the time.
- Nobody says "please remember". The turn that holds the answer is marked as a mention that is worth a note:
  stages tell whether it was kept, and the story passes or fails by the answer alone.
- A story is one question; its family is scenario and topic, that is, the session that holds the answer.
- One corpus a scenario: all users speak of themselves, and "How old am I?" has another answer in each.
- The files mark no turn. The turn is found by the quote that comes with the accepted answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from memeval.errors import InputError
from memeval.scenarios.importers import answers
from memeval.scenarios.importers.base import Document, Options, Source, Tally, slug
from memeval.scenarios.importers.history import History, Said, asked, facts_of, given_story, picked, story
from memeval.scenarios.importers.question import NO_EVIDENCE, Question
from memeval.scenarios.importers.reading import Raw, clean, parsed, read_items
from memeval.scenarios.schema import Expect, Scenario, Session, Turn

QUESTIONS = "BFCL_v4_memory.json"
GOLD = f"possible_answer/{QUESTIONS}"
SESSIONS = "memory_prereq_conversation"
NO_SESSIONS = "the sessions of its scenario are not in the folder"
_FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)
_ENOUGH = 0.6
"""Share of a quote's words that a turn must hold to be the one that is quoted."""


class Spoken(Raw):
    """A message."""

    role: str
    content: str


class Prompt(Raw):
    """A question, or a session of the user's turns."""

    unused: ClassVar[frozenset[str]] = frozenset({"involved_classes", "depends_on", "initial_config", "path"})
    id: str
    question: list[list[Spoken]]
    scenario: str
    topic: str = ""


class Accepted(Raw):
    """The accepted answers to a question, and a quote of the turn that holds them."""

    id: str
    ground_truth: list[str | int | float]
    source: str = ""


@dataclass(frozen=True, slots=True)
class _Scenario:
    """The sessions of a scenario, by their ids, with topics and texts as they are compared."""

    history: dict[str, list[Said]]
    topics: dict[str, str]
    plain: dict[str, str]

    def session_of(self, turn: str) -> str:
        return next(name for name, said in self.history.items() if any(one.id == turn for one in said))


def read(path: Path, options: Options, tally: Tally) -> Source:
    """The questions of a data folder and how their stories are made. Raises InputError."""
    _check(path, tally)
    scenarios = _sessions(path / SESSIONS, tally)
    gold: dict[str, Accepted] = {}
    for place, data in read_items(path / GOLD, tally):
        accepted = parsed(Accepted, data, place, tally)
        if gold.setdefault(accepted.id, accepted) is not accepted:
            tally.note("accepted answers that stand twice for one question; the first count")
    questions: list[Question] = []
    for place, data in read_items(path / QUESTIONS, tally):
        prompt = parsed(Prompt, data, place, tally)
        questions.append(_question(prompt, gold.pop(prompt.id, None), len(questions), scenarios, tally))
    if gold:
        tally.note("accepted answers to a question that is not in the folder", len(gold))
    documents = {
        name: {one.id: Document(one.text, "message") for said in found.history.values() for one in said}
        for name, found in scenarios.items()
    }
    make = _given if options.given else _live

    def stories(chosen: Sequence[Question]) -> Iterator[tuple[Question, Scenario]]:
        for question in chosen:
            made = make(question, scenarios[question.dataset].history, options, tally)
            if made is not None:
                yield question, made

    return Source(questions, documents, stories)


def _check(path: Path, tally: Tally) -> None:
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give {tally.benchmark.wants}")
    for name in (QUESTIONS, GOLD, SESSIONS):
        if not (path / name).exists():
            raise InputError(f"{path}: there is no {name} in it; give {tally.benchmark.wants}")


def _sessions(folder: Path, tally: Tally) -> dict[str, _Scenario]:
    found: dict[str, _Scenario] = {}
    files = sorted(folder.glob("*.json"))
    if not files:
        raise InputError(f"{folder}: no session file (memory_<scenario>.json) in it")
    for file in files:
        for place, data in read_items(file, tally):
            prompt = parsed(Prompt, data, place, tally)
            scenario = found.setdefault(slug(prompt.scenario), _Scenario({}, {}, {}))
            name = re.sub(r"\s+", "_", clean(prompt.id))
            if name in scenario.history:
                raise InputError(f"{place}: the session {prompt.id!r} stands twice")
            texts = [clean(" ".join(m.content for m in turn if m.role == "user")) for turn in prompt.question]
            said = [Said(f"{name}#t{i}", text) for i, text in enumerate(texts) if text]
            tally.note("an empty message, left out", len(texts) - len(said))
            if not said:
                tally.note("a session without a message, left out")
                continue
            scenario.history[name] = said
            scenario.topics[name] = clean(prompt.topic) or name
            scenario.plain.update((one.id, answers.plain(one.text)) for one in said)
    return found


def _question(
    prompt: Prompt, gold: Accepted | None, at: int, scenarios: Mapping[str, _Scenario], tally: Tally
) -> Question:
    texts = [message.content for turn in prompt.question for message in turn if message.role == "user"]
    kind = slug(prompt.scenario)
    question = Question(
        id=tally.name(prompt.id), family=tally.name(kind, unique=False), kind=kind,
        text=clean(" ".join(texts)), at=at, dataset=kind,
    )  # fmt: skip
    question.read_answer(gold.ground_truth if gold else [])
    scenario = scenarios.get(kind)
    if scenario is None:
        question.no_story = question.no_query = NO_SESSIONS
        return question
    turn = _quoted(gold.source, question, scenario.plain) if gold else ""
    if not turn:
        question.flaw("no-evidence")
        question.no_query = NO_EVIDENCE
        question.no_story = question.no_story or NO_EVIDENCE
        return question
    question.relevant = [turn]
    question.family = tally.name(f"{kind}-{scenario.topics[scenario.session_of(turn)]}", unique=False)
    question.mark_evidence(scenario.plain[turn])
    question.mark_elsewhere(text for key, text in scenario.plain.items() if key != turn)
    return question


def _quoted(quote: str, question: Question, turns: Mapping[str, str]) -> str:
    """The id of the turn that a quote is from, nothing if there is none.

    A quote leaves out parts, as `...`, and is not always exact: the turn that holds most of its characters in
    whole parts is taken, of equals the one that holds most of its words, then the one that names the answer.
    """
    pieces = [_words(piece) for piece in re.split(r"\.\.\.|…", answers.plain(quote))]
    pieces = [piece for piece in pieces if piece]
    words = {word for piece in pieces for word in piece.split()}
    best, found = (0, 0.0, False), ""
    for key, text in turns.items():
        said = f" {_words(text)} "
        whole = sum(len(piece) for piece in pieces if f" {piece} " in said)
        shared = sum(f" {word} " in said for word in words) / max(1, len(words))
        score = (whole, shared, answers.named_in(text, question.answer))
        if score > best and (whole or shared >= _ENOUGH):
            best, found = score, key
    return found


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def _given(question: Question, history: History, options: Options, tally: Tally) -> Scenario | None:
    at = _FIRST + timedelta(days=len(history))
    return given_story(
        question, history, question.relevant, ask=question.text, at=at, options=options, tally=tally
    )


def _live(question: Question, history: History, options: Options, tally: Tally) -> Scenario | None:
    needed = {name for name, said in history.items() if any(one.id in question.relevant for one in said)}
    most = 1 if options.sessions is None else options.sessions
    chosen = picked(question, history, needed, most) or []
    evidence = [one for name in chosen for one in history[name] if one.id in question.relevant]
    facts, shown = facts_of(question, evidence, key=slug(question.id).replace("-", "."), given=False)
    sessions = []
    for day, name in enumerate(chosen):
        turns = [
            Turn(user=piece, strength="mention", expect=Expect(intent="note", facts=shown))
            if one.id in question.relevant
            else Turn(user=piece)
            for one in history[name]
            for piece in one.pieces()
        ]
        sessions.append(Session(at=_FIRST + timedelta(days=day), turns=turns))
    last = Session(at=_FIRST + timedelta(days=len(chosen)), turns=[asked(question, question.text, shown)])
    return story(question, facts, [*sessions, last], tally)
