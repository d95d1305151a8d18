"""What was said before a question, as records that stand in memory when it is asked.

A message is told with who said it and on which day, because that is all a design gets: every record is put
into the store at the moment the question is asked, in the order of the sessions. No model is asked for any
of it, so that every design starts from the same memory, and a difference between designs is one of finding
and answering, not of luck in 300 earlier replies.

The records name no kind, so that each design has them as what it looks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memeval.memory.chunking import passages
from memeval.scenarios.importers import answers
from memeval.scenarios.importers.base import Options, Tally, short
from memeval.scenarios.importers.question import Question
from memeval.scenarios.schema import Answer, Expect, Fact, Given, Scenario, Session, Turn

SESSIONS = 10
"""Past sessions in memory unless a person says otherwise: the evidence, and others by chance. All 19 to 50 of
a LoCoMo or LongMemEval question are half a megabyte of story, a quarter of a gigabyte for all questions."""
ROOM = 700_000
"""Bytes of records of one story. A story file holds 1,000,000, and the evidence stands there twice."""
SENTENCE = 300
"""Characters of a message that can stand for the fact in it; else the question and its answer do."""
LONGEST = 20_000
"""Characters of one record, as the schema has it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message: its id in its corpus, and its text with who said it and when."""

    id: str
    text: str

    def pieces(self) -> list[str]:
        """The text, in parts where it is longer than a record may be."""
        return passages(self.text, size=LONGEST, overlap=0)


History = Mapping[str, Sequence[Said]]
"""The sessions before a question, by their names, in their order."""


def facts_of(
    question: Question, evidence: Sequence[Said], key: str = "", *, given: bool = True
) -> tuple[dict[str, Fact], list[str]]:
    """The facts of a question, and the names of those that memory has to show for it. `key`: their topic key.

    Memory has to show the answer if it stands in the evidence, else the evidence itself: the stage
    `retrieved` would be broken in any case where an answer is worked out from what was said. Where memory
    is not `given` but written by the model, the evidence need not stand in it word for word; then nothing
    has to be shown.
    """
    facts: dict[str, Fact] = {}
    plain = [answers.plain(said.text) for said in evidence]
    for number, forms in enumerate(question.answer, 1):
        told = [s.text for s, text in zip(evidence, plain, strict=True) if answers.named(text, forms)]
        text = told[0] if told and len(told[0]) <= SENTENCE else f"{question.text} {forms[0]}"
        facts[_name("answer", number)] = Fact(text=text, values=forms, key=key)
    states = list(facts)
    if question.trap:
        facts["trap"] = Fact(text=f"{question.text} {question.trap[0]}", values=question.trap)
    if not evidence or question.unanswerable:
        return facts, []
    if states and all(any(answers.named(text, facts[name].values) for text in plain) for name in states):
        return facts, states
    shown: list[str] = []
    if not given:
        return facts, shown
    for number, said in enumerate(evidence, 1):
        shown.append(_name("evidence", number))
        facts[shown[-1]] = Fact(text=short(said.text, SENTENCE), values=said.pieces())
    return facts, shown


def asked(question: Question, text: str, shown: Sequence[str]) -> Turn:
    """The turn that asks: `text` is the question as the user says it."""
    if question.unanswerable:
        answer = Answer(admits_unknown=True, avoids=["trap"] if question.trap else [])
    else:
        names = [_name("answer", number) for number in range(1, len(question.answer) + 1)]
        answer = Answer(states=names)
    return Turn(user=text, expect=Expect(intent="recall", facts=list(shown), answer=answer))


def picked(
    question: Question, history: History, needed: Collection[str], most: int, room: int = ROOM
) -> list[str] | None:
    """The sessions that stand in memory, in their order: those needed, and others up to `most` (0: all).

    The others are chosen by a hash of question and session, the same on every machine, for as long as all
    fits into `room` bytes. None where those needed do not.
    """
    size = {name: sum(len(s.text.encode()) + 24 for s in said) for name, said in history.items()}
    found = {name for name in history if name in needed}
    room -= sum(size[name] for name in found)
    if room < 0:
        return None
    others = sorted(
        (name for name in history if name not in found),
        key=lambda name: hashlib.sha256(f"{question.id}/{name}".encode()).digest(),
    )
    for name in others:
        if (most and len(found) >= most) or size[name] > room:
            continue
        found.add(name)
        room -= size[name]
    return [name for name in history if name in found]


def given_story(
    question: Question, history: History, evidence: Collection[str], *, ask: str, at: datetime,
    options: Options, tally: Tally, needed: Collection[str] = (), most: int = SESSIONS,
) -> Scenario | None:  # fmt: skip
    """The story of one question whose history stands in memory; None where what it needs is too long.

    `evidence` are the ids of the messages that hold the answer, `needed` sessions that belong to it besides,
    `most` the sessions in memory unless the options say otherwise.
    """
    told = [said for session in history.values() for said in session if said.id in evidence]
    holding = {name for name, session in history.items() if any(said.id in evidence for said in session)}
    holding.update(name for name in needed if name in history)
    most = most if options.sessions is None else options.sessions
    chosen = picked(question, history, holding, most)
    if chosen is None:
        return None
    wanted = min(most or len(history), len(history))
    if len(chosen) < max(wanted, len(holding)):
        tally.note("a story with fewer sessions in memory, for a story file can hold no more")
    given = given_records(one for name in chosen for one in history[name])
    facts, shown = facts_of(question, told)
    return story(question, facts, [Session(at=at, given=given, turns=[asked(question, ask, shown)])], tally)


def given_records(said: Iterable[Said]) -> list[Given]:
    """Messages as records of memory."""
    return [Given(text=piece) for one in said for piece in one.pieces()]


def story(
    question: Question, facts: Mapping[str, Fact], sessions: Sequence[Session], tally: Tally
) -> Scenario:
    """A scenario of a question; its tags are the benchmark, the kind and the flaws."""
    return Scenario(
        scenario=question.id,
        family=question.family,
        title=short(question.text),
        tags=list(dict.fromkeys([tally.benchmark.name, question.kind, *question.flaws])),
        facts=dict(facts),
        sessions=list(sessions),
    )


def _name(what: str, number: int) -> str:
    return what if number == 1 else f"{what}-{number}"
