"""Letta's core memory update: groups of ten invented facts, a correction of one, and what is asked then.

How it becomes stories, and why:

- The ten facts of a group stand in memory. In the first session the user corrects one of them, told live
  because it is what is measured; in the next session the user asks for what is right now, and the reply must
  name the new answer.
- The user asks for the correction in plain words (`Please correct what you know: ...`): the benchmark sends
  the new fact alone, and its models had the old ones in the prompt.
- A story is one question; its family is the group of facts, which all its questions share.
- The file does not say what was right before the correction, so no story can ask that it be avoided.
- Retrieval asks the same questions of the facts as they were: all groups are one corpus, for the names are
  invented. Plain word search finds nine tenths of them first; use it for writing rather than for ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from memeval.scenarios.importers import answers
from memeval.scenarios.importers.base import Document, Options, Source, Tally
from memeval.scenarios.importers.history import Said, asked, facts_of, given_records, story
from memeval.scenarios.importers.question import LENGTHY, MOST_TOLD, NO_EVIDENCE, Question
from memeval.scenarios.importers.reading import Raw, clean, parsed, read_items
from memeval.scenarios.schema import Expect, Scenario, Session, Turn

DATASET = "facts"
TOLD = "Please correct what you know: {fact}"
NO_CORRECTION = "there is no correction to tell"
_TOLD_AT, _ASKED_AT = datetime(2026, 1, 5, 9, tzinfo=UTC), datetime(2026, 1, 6, 9, tzinfo=UTC)


class Extra(Raw):
    """What an item says besides question and answer."""

    facts: list[str]
    supporting_fact_indices: list[int] | None = None
    contradicting_fact: str | None = None
    contradicting_answer: str | int | float | None = None


class Arguments(Raw):
    """The wrapping of it."""

    extra: Extra


class Item(Raw):
    """One question and its answer after the correction."""

    input: str
    ground_truth: str | int | float | None = None
    agent_args: Arguments


def read(path: Path, _options: Options, tally: Tally) -> Source:
    """The questions of a `core_memory_update.jsonl` and how their stories are made. Raises InputError."""
    questions: list[Question] = []
    labels: dict[tuple[str, ...], str] = {}
    groups: dict[str, list[Said]] = {}
    asked_of: dict[str, int] = {}
    told: dict[str, tuple[str, list[Said]]] = {}
    for place, data in read_items(path, tally):
        item = parsed(Item, data, place, tally)
        extra = item.agent_args.extra
        key = tuple(map(clean, extra.facts))
        label = labels.setdefault(key, f"g{len(labels):03}")
        facts = groups.setdefault(label, [Said(f"{label}-f{i}", text) for i, text in enumerate(key)])
        asked_of[label] = asked_of.get(label, -1) + 1
        question = Question(
            id=tally.name(f"{label}-q{asked_of[label]}"), family=tally.name(label, unique=False),
            kind="one-fact", text=clean(item.input), at=len(questions), dataset=DATASET,
        )  # fmt: skip
        _evidence(question, extra.supporting_fact_indices or [], facts)
        correction = clean(extra.contradicting_fact or "")
        if correction[:1] == correction[-1:] == '"':
            correction = correction.strip('" ')
            question.flaw("quoted-fact")
        _answer(question, item, correction, facts)
        told[question.id] = correction, facts
        questions.append(question)
    documents = {
        said.id: Document(said.text, "fact") for facts in groups.values() for said in facts if said.text
    }

    def stories(chosen: Sequence[Question]) -> Iterator[tuple[Question, Scenario]]:
        for question in chosen:
            yield question, _story(question, *told[question.id], tally)

    return Source(questions, {DATASET: documents}, stories)


def _evidence(question: Question, indices: Sequence[int], facts: Sequence[Said]) -> None:
    for index in indices:
        if not 0 <= index < len(facts):
            question.flaw("evidence-unknown")
        elif facts[index].id not in question.relevant and facts[index].text:
            question.relevant.append(facts[index].id)
    if not question.relevant:
        question.flaw("no-evidence")
        question.no_query = NO_EVIDENCE
    elif len(question.relevant) > 1:
        question.kind = "several-facts"


def _answer(question: Question, item: Item, correction: str, facts: Sequence[Said]) -> None:
    gold = item.ground_truth
    if gold is None:
        gold = item.agent_args.extra.contradicting_answer
    question.read_answer([] if gold is None else [gold])
    if not correction:
        question.no_story = question.no_story or NO_CORRECTION
    elif len(correction) > MOST_TOLD:
        question.no_story = question.no_story or LENGTHY
    else:
        question.mark_evidence(answers.plain(correction))
        question.mark_elsewhere(answers.plain(said.text) for said in facts)


def _story(question: Question, correction: str, facts: Sequence[Said], tally: Tally) -> Scenario:
    known, shown = facts_of(
        question, [Said("correction", correction)], key=question.id.replace("-", "."), given=False
    )
    tell = Turn(
        user=TOLD.format(fact=correction),
        expect=Expect(intent="update", facts=shown),
    )
    sessions = [
        Session(at=_TOLD_AT, given=given_records(said for said in facts if said.text), turns=[tell]),
        Session(at=_ASKED_AT, turns=[asked(question, question.text, shown)]),
    ]
    return story(question, known, sessions, tally)
