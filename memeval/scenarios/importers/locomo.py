"""LoCoMo: conversations of two people over months, and questions about them.

How it becomes stories, and why:

- Neither speaker is the user. A model that answers as one of them would have to be given the other's lines,
  and would change them by its own replies. So both speakers' lines stand in memory, each with speaker and day
  (`Ann, 8 May 2023: ...`), and the user is a third person who asks one question in a fresh conversation, as
  the benchmark does. Every design starts from the same memory: what is compared is finding and answering.
- The caption of a shared picture stands behind its line; the picture and the words it was searched by do not,
  because nobody in the conversation saw them.
- A story is one question, its family the conversation. `--sessions` says how many sessions stand in memory.
- Categories are numbers. Category 5 is adversarial: its questions assume what is not so, `adversarial_answer`
  is the trap, right is to say that it is not known. In retrieval they are unanswerable.
- One corpus a conversation: names return in other conversations as other people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from memeval.errors import InputError
from memeval.scenarios.importers import answers
from memeval.scenarios.importers.base import Document, Options, Source, Tally, slug
from memeval.scenarios.importers.history import History, Said, given_story
from memeval.scenarios.importers.question import NO_EVIDENCE, Question
from memeval.scenarios.importers.reading import Raw, clean, parsed, read_items
from memeval.scenarios.schema import Scenario

ADVERSARIAL = 5
_MESSAGE = re.compile(r"D:?\s*(\d+)\s*:\s*(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_NO_DATE = datetime(2026, 1, 1, 9, tzinfo=UTC)


class Line(Raw):
    """What one speaker said."""

    unused: ClassVar[frozenset[str]] = frozenset({"img_url", "query", "re-download", "img_file"})
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class Asked(Raw):
    """A question; `category` 1 to 5."""

    question: str
    category: int
    evidence: list[str] | None = None
    answer: str | int | float | None = None
    adversarial_answer: str | int | float | None = None


class Conversation(Raw):
    """A conversation: its sessions are read from `session_<n>` and `session_<n>_date_time`."""

    unused: ClassVar[frozenset[str]] = frozenset({"event_summary", "observation", "session_summary"})
    sample_id: str | int
    conversation: dict[str, Any]
    qa: list[Asked]


def read(path: Path, options: Options, tally: Tally) -> Source:
    """The questions of a `locomo10.json` and how their stories are made. Raises InputError."""
    questions: list[Question] = []
    documents: dict[str, dict[str, Document]] = {}
    histories: dict[str, tuple[History, datetime]] = {}
    for place, item in read_items(path, tally):
        sample = parsed(Conversation, item, place, tally)
        family = tally.name(str(sample.sample_id), unique=False)
        if family in documents:
            raise InputError(f"{place}: the conversation {sample.sample_id!r} stands twice")
        history, last = _history(sample.conversation, place, tally)
        histories[family] = history, last + timedelta(days=1)
        said = {one.id: one.text for session in history.values() for one in session}
        plain = {key: answers.plain(text) for key, text in said.items()}
        documents[family] = {key: Document(text, "message") for key, text in said.items()}
        for number, asked in enumerate(sample.qa, 1):
            name = tally.name(f"{sample.sample_id}-q{number}")
            questions.append(_question(asked, name, family, len(questions), said, plain))

    def stories(chosen: Sequence[Question]) -> Iterator[tuple[Question, Scenario]]:
        for question in chosen:
            history, at = histories[question.family]
            made = given_story(
                question, history, question.relevant, ask=question.text, at=at, options=options, tally=tally
            )
            if made is not None:
                yield question, made

    return Source(questions, documents, stories)


def _question(
    asked: Asked, name: str, family: str, at: int, said: dict[str, str], plain: dict[str, str]
) -> Question:
    question = Question(
        id=name, family=family, kind=slug(f"category-{asked.category}"), text=clean(asked.question), at=at,
        dataset=family,
    )  # fmt: skip
    _evidence(question, asked.evidence or [], said)
    if asked.category == ADVERSARIAL:
        question.unanswerable = True
        question.flaw("unanswerable")
        if asked.answer is not None:
            question.no_story = "adversarial, and yet an answer is given"
        if asked.adversarial_answer is not None and not answers.unfit(str(asked.adversarial_answer)):
            question.trap = answers.forms(str(asked.adversarial_answer), question.text)
        return question
    question.read_answer([] if asked.answer is None else [asked.answer])
    if not question.relevant:
        question.flaw("no-evidence")
        question.no_query = NO_EVIDENCE
    else:
        question.mark_evidence(" ".join(plain[key] for key in question.relevant))
        question.mark_elsewhere(text for key, text in plain.items() if key not in question.relevant)
    return question


def _evidence(question: Question, written: Sequence[str], said: dict[str, str]) -> None:
    """Read ids such as `D8:6; D9:17`, `D:11:26`, `D30:05`."""
    for text in written:
        found = [f"D{int(session)}:{int(line)}" for session, line in _MESSAGE.findall(text)]
        if found and found != [text]:
            question.flaw("evidence-repaired")
        if not found or any(key not in said for key in found):
            question.flaw("evidence-unknown")
        question.relevant += [key for key in found if key in said and key not in question.relevant]


def _history(written: dict[str, Any], place: str, tally: Tally) -> tuple[History, datetime]:
    """The sessions in their order, and the day of the last one."""
    numbers = sorted(int(m[1]) for key, lines in written.items() if (m := _SESSION.fullmatch(key)) and lines)
    if not numbers:
        raise InputError(f"{place}: no session_1 in the conversation; this is no conversation of LoCoMo")
    history: dict[str, list[Said]] = {}
    last = _NO_DATE
    taken: set[str] = set()
    for number in numbers:
        lines = written[f"session_{number}"]
        if not isinstance(lines, list):
            raise InputError(f"{place}: session_{number} must be a list of lines")
        told = str(written.get(f"session_{number}_date_time") or "")
        moment = _moment(told)
        if moment is None:
            tally.note("a session whose date cannot be read; its text stands as it is written")
        last = moment or last
        day = f"{moment.day} {moment:%B %Y}" if moment else clean(told)
        session = history.setdefault(f"session_{number}", [])
        for line in (parsed(Line, entry, place, tally) for entry in lines):
            key = _canonical(line.dia_id)
            if key in taken:
                tally.note("a line whose id stands twice; the later one is no evidence")
                key = f"{key}.{len(taken)}"
            taken.add(key)
            text = clean(line.text)
            if line.blip_caption and (caption := clean(line.blip_caption)):
                text = f"{text} [shares a picture: {caption}]".strip()
            if not text:
                tally.note("an empty message, left out")
                continue
            session.append(Said(key, f"{clean(line.speaker)}{f', {day}' if day else ''}: {text}"))
    return history, last


def _canonical(written: str) -> str:
    match = _MESSAGE.search(written)
    return f"D{int(match[1])}:{int(match[2])}" if match else re.sub(r"\s+", "_", clean(written)) or "D"


def _moment(written: str) -> datetime | None:
    """`1:56 pm on 8 May, 2023`."""
    try:
        return datetime.strptime(written.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
