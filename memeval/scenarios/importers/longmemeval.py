"""LongMemEval: questions over some fifty past sessions of a user with an assistant.

How it becomes stories, and why:

- Past sessions stand in memory, message by message, with who spoke and the day (`User, 20 May 2023: ...`).
  Told turn by turn they would be some 250 model turns a question, and each model would answer otherwise.
- The assistant's messages stand there as well: a sixth of the questions asks for what the assistant said, and
  without them a memory of user turns alone would be easier to search than the one the benchmark means.
- The question is asked with its date (`Today is 30 May 2023. ...`), as the benchmark's own prompt does;
  without it questions of time have no answer.
- A story is one question. Its family is the question's id without `_abs`, so that a question and its
  unanswerable twin count once. `_abs` questions ask for the admission that it is not known.
- Answers to preference questions are rubrics for a judge: no stories, but questions for retrieval.
- `--sessions` says how many sessions stand in memory; those with the evidence always do.
- The corpus for retrieval is the evidence sessions of all questions in one, in passages short enough to be
  embedded whole. The users of other questions may say something like the answer: counted as `answer-in-pool`.

The file is read twice, item by item: 280 MB of `longmemeval_s.json` need no more memory than one question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from memeval.errors import InputError
from memeval.memory.chunking import passages
from memeval.scenarios.importers import answers
from memeval.scenarios.importers.base import Document, Options, Source, Tally, slug
from memeval.scenarios.importers.history import History, Said, given_story
from memeval.scenarios.importers.question import NO_EVIDENCE, Question
from memeval.scenarios.importers.reading import Raw, clean, parsed, read_items
from memeval.scenarios.schema import Scenario

DATASET = "evidence"
PASSAGE = 1200
"""Characters of a text in the corpus: what MiniLM's 512 tokens hold even of tables and figures."""
PREFERENCE = "single-session-preference"
RUBRIC = "the answer is a rubric for a judge, not a value"
_DATE = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?:\s*\(\w+\))?(?:\s+(\d{1,2}):(\d{2}))?")
_EITHER = re.compile(r"\s*(.+?)\.\s+(.+?) \(including the last day\) is also acceptable\.?\s*", re.DOTALL)
_NO_DATE = datetime(2026, 1, 1, 9, tzinfo=UTC)


class Message(Raw):
    """One message of a past session."""

    role: str
    content: str
    has_answer: bool | None = None


class Entry(Raw):
    """A question with its haystack."""

    unused: ClassVar[frozenset[str]] = frozenset({"autoeval_label"})
    question_id: str
    question_type: str
    question: str
    answer: str | int | float
    question_date: str = ""
    haystack_session_ids: list[str]
    haystack_dates: list[str]
    haystack_sessions: list[list[Message]]
    answer_session_ids: list[str]


def read(path: Path, options: Options, tally: Tally) -> Source:
    """The questions of a LongMemEval file and how their stories are made. Raises InputError."""
    questions: list[Question] = []
    corpus: dict[str, Document] = {}
    for place, item in read_items(path, tally):
        entry = _entry(item, place, tally)
        questions.append(_question(entry, len(questions), corpus, tally))
    plain = {key: answers.plain(document.text) for key, document in corpus.items()}
    for question in questions:
        relevant = set(question.relevant)
        question.mark_elsewhere((t for key, t in plain.items() if key not in relevant), "answer-in-pool")

    def stories(chosen: Sequence[Question]) -> Iterator[tuple[Question, Scenario]]:
        wanted = {question.at: question for question in chosen}
        quiet = Tally(tally.benchmark)  # the first look has counted what is odd in the file
        for at, (place, item) in enumerate(read_items(path, quiet)):
            if (question := wanted.get(at)) is None:
                continue
            past = _past(_entry(item, place, quiet))
            moment = _moment(past.entry.question_date)
            today = f"Today is {moment.day} {moment:%B %Y}. " if moment else ""
            made = given_story(
                question, past.history, past.marked, ask=today + question.text, at=moment or _NO_DATE,
                options=options, tally=tally, needed=past.needed,
            )  # fmt: skip
            if made is not None:
                yield question, made

    return Source(questions, {DATASET: corpus}, stories)


def _entry(item: Any, place: str, tally: Tally) -> Entry:
    entry = parsed(Entry, item, place, tally)
    sizes = [len(entry.haystack_session_ids), len(entry.haystack_dates), len(entry.haystack_sessions)]
    if len(set(sizes)) > 1:
        raise InputError(
            f"{place}: question {entry.question_id!r} has {sizes[0]} session ids, {sizes[1]} dates and"
            f" {sizes[2]} sessions; they must be as many"
        )
    return entry


@dataclass(frozen=True, slots=True)
class _Past:
    """A question's sessions in their order; the ids of marked messages, the names of evidence sessions."""

    entry: Entry
    history: History
    marked: frozenset[str]
    needed: tuple[str, ...]
    empty: int
    undated: int


def _past(entry: Entry) -> _Past:
    history: dict[str, list[Said]] = {}
    marked, needed = set(), []
    empty = undated = 0
    sessions = zip(entry.haystack_session_ids, entry.haystack_dates, entry.haystack_sessions, strict=True)
    for name, date, messages in sorted(sessions, key=lambda session: _moment(session[1]) or _NO_DATE):
        key = re.sub(r"\s+", "_", clean(name)) or "session"
        while key in history:
            key += "+"
        if name in entry.answer_session_ids:
            needed.append(key)
        moment = _moment(date)
        undated += moment is None
        day = f"{moment.day} {moment:%B %Y}" if moment else clean(date)
        history[key] = []
        for number, message in enumerate(messages):
            if not (text := clean(message.content)):
                empty += 1
                continue
            who = clean(message.role).capitalize()
            said = Said(f"{key}_{number}", f"{who}{f', {day}' if day else ''}: {text}")
            history[key].append(said)
            if message.has_answer:
                marked.add(said.id)
    return _Past(entry, history, frozenset(marked), tuple(needed), empty, undated)


def _question(entry: Entry, at: int, corpus: dict[str, Document], tally: Tally) -> Question:
    absent = entry.question_id.endswith("_abs")
    question = Question(
        id=tally.name(entry.question_id),
        family=tally.name(entry.question_id.removesuffix("_abs"), unique=False),
        kind="abstention" if absent else slug(entry.question_type),
        text=clean(entry.question), at=at, dataset=DATASET, unanswerable=absent,
    )  # fmt: skip
    past = _past(entry)
    tally.note("an empty message, left out", past.empty)
    tally.note("a session whose date cannot be read; its text stands as it is written", past.undated)
    for name in past.needed:
        _add(question, past.history[name], past.marked, corpus)
    if _moment(entry.question_date) is None:
        question.flaw("date-unreadable")
    if absent:
        question.flaw("unanswerable")
        question.relevant = []
        return question
    if question.kind == PREFERENCE:
        question.no_story = RUBRIC
    gold = entry.answer
    either = _EITHER.fullmatch(gold) if isinstance(gold, str) else None
    question.read_answer([either[1], either[2]] if either else [gold])
    if not question.relevant:
        question.flaw("no-evidence")
        question.no_query = NO_EVIDENCE
    else:
        said = {one.id: answers.plain(one.text) for session in past.history.values() for one in session}
        question.mark_evidence(" ".join(said[key] for key in past.marked))
        question.mark_elsewhere(text for key, text in said.items() if key not in past.marked)
    return question


def _add(
    question: Question, session: Sequence[Said], marked: Collection[str], corpus: dict[str, Document]
) -> None:
    """Put an evidence session into the corpus. Where an id stands there with other words, under one more."""
    for said in session:
        pieces = [piece for piece in passages(said.text, size=PASSAGE, overlap=0) if piece.strip()]
        for number, piece in enumerate(pieces, 1):
            key = said.id if number == 1 else f"{said.id}.{number}"
            while corpus.setdefault(key, Document(piece, "message")).text != piece:
                key += "+"
            if said.id in marked:
                question.relevant.append(key)


def _moment(written: str) -> datetime | None:
    """`2023/05/30 (Tue) 23:40`; the time may be missing."""
    match = _DATE.fullmatch(written.strip())
    try:
        year, month, day, hour, minute = (int(part or 0) for part in match.groups()) if match else (0,) * 5
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None
