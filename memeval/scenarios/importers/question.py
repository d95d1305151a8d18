"""A question of a benchmark, with what is known to be wrong with it.

It can become a story, a question for retrieval, both or neither; where it does not, the reason is kept and
counted. A flaw does not keep a question out: it is counted, and the story carries it as a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memeval.scenarios.importers import answers

FLAWS: Mapping[str, str] = {
    "answer-elsewhere": "the answer also stands in a message that is not its evidence",
    "answer-in-pool": "the answer also stands in messages of another question's history, in the same corpus",
    "answer-in-question": "the question names its own answer, so that a guess passes",
    "answer-inferred": "a number or date that does not stand in its evidence and has to be worked out",
    "answer-reworded": "the answer does not stand in its evidence in these words, so a right reply may not",
    "date-unreadable": "a date that cannot be read; the story keeps its order without it",
    "evidence-repaired": "a malformed evidence id, repaired",
    "evidence-unknown": "evidence names a message that is not there",
    "list-answer": "the answer is a list; a reply must name every part",
    "no-evidence": "no message is known to hold the answer",
    "numeric-answer": "the answer is a number where text is expected",
    "quoted-fact": "a fact in quotes of its own, taken off",
    "several-answers": "several different answers are right, and only one message is marked",
    "short-answer": "an answer of three signs or fewer, which may stand in a reply by chance",
    "unanswerable": "unanswerable or adversarial: right is only to say that it is not known",
}
"""What is known to be wrong with questions. The names are tags of the stories."""
DOUBTFUL = frozenset({"answer-reworded", "answer-in-question"})
"""Flaws that make a verdict doubtful: a right reply may fail, or a guess may pass."""

NO_ANSWER = "no accepted answer is given"
EMPTY = "the question is empty"
LENGTHY = "the question, or what is told with it, is longer than a turn may be"
MOST_TOLD = 19_000
"""Characters of a question; a turn may have 20,000, with what is said around it."""
NO_EVIDENCE = "no message is known to hold the answer"


@dataclass(slots=True, kw_only=True)
class Question:
    """One question of a benchmark. `answer`: forms of each part a reply must name; `trap`: of a wrong one.

    `dataset` names the corpus its evidence lies in, `relevant` the ids there, `kind` its type, `at` its place
    in the file.
    """

    id: str
    family: str
    kind: str
    text: str
    at: int
    dataset: str = ""
    answer: list[list[str]] = field(default_factory=list)
    trap: list[str] = field(default_factory=list)
    relevant: list[str] = field(default_factory=list)
    unanswerable: bool = False
    flaws: list[str] = field(default_factory=list)
    no_story: str = ""
    no_query: str = ""

    def __post_init__(self) -> None:
        if not self.text:
            self.no_story = self.no_query = EMPTY
        elif len(self.text) > MOST_TOLD:
            self.no_story = LENGTHY

    def flaw(self, name: str) -> None:
        """Mark a flaw, once."""
        assert name in FLAWS
        if name not in self.flaws:
            self.flaws.append(name)

    def read_answer(self, gold: Sequence[str | int | float]) -> None:
        """Take the accepted answers, any one of which is right, and mark what is known to be wrong."""
        if any(not isinstance(one, str) for one in gold):
            self.flaw("numeric-answer")
        texts = [text for one in gold if (text := str(one).strip())]
        if not texts:
            self.no_story = self.no_story or NO_ANSWER
            return
        unfit = [answers.unfit(text) for text in texts]
        if all(unfit):
            self.no_story = self.no_story or unfit[0]
        fit = [text for text, reason in zip(texts, unfit, strict=True) if not reason] or texts
        if len(fit) > 1:
            found = [form for text in fit for form in answers.forms(text, self.text)]
            self.answer = [list(dict.fromkeys(found))]
            if any(not _same(fit[0], text) for text in fit[1:]):
                self.flaw("several-answers")
        else:
            self.answer = [answers.forms(part, self.text) for part in answers.parts(fit[0])]
            if len(self.answer) > 1:
                self.flaw("list-answer")
        if any(len(form) <= 3 for part in self.answer for form in part):
            self.flaw("short-answer")
        if answers.named_in(answers.plain(self.text), self.answer):
            self.flaw("answer-in-question")

    def mark_evidence(self, plain_text: str) -> None:
        """Mark an answer that does not stand in the text of its evidence, made `answers.plain` before."""
        if self.answer and not answers.named_in(plain_text, self.answer):
            self.flaw("answer-inferred" if answers.is_figure(self.answer) else "answer-reworded")

    def mark_elsewhere(self, plain_texts: Iterable[str], flaw: str = "answer-elsewhere") -> None:
        """Mark that the answer also stands in one of these texts, made `answers.plain` before."""
        if any(answers.named_in(text, self.answer) for text in plain_texts):
            self.flaw(flaw)


def _same(one: str, other: str) -> bool:
    """Whether two answers differ in spelling alone: signs, or a number in figures and in words."""
    plain = [re.sub(r"[\W_]", "", text.casefold()) for text in (one, other)]
    figures = [text.isdecimal() for text in plain]
    return plain[0] == plain[1] or (any(figures) and not all(figures))
