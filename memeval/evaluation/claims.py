"""Claims of saving: a lexicon of what a reply may say was or will be kept, each form with an example.

What counts as a claim is that something of the conversation was, is being or will be kept: in memory, notes,
a list, a reminder ("I've saved it", "Noted!", "I'll remember that", "Memory updated."). No claim is

- a report of reading ("According to my saved notes ...", "the note I saved earlier"),
- a denial, a removal, an attempt that failed, an offer ("I can save that"), a promise under a condition that
  the user is to fulfil ("I'll save it if you like"), a question, advice ("You should note it down"),
- a promise for this conversation only, which needs no memory,
- a promise to act ("I'll call you Fennimore from now on"), or mere acknowledgement ("Got it!"),
- what stands in double quotes, in code or in a call: it is not said in the reply's own voice,
- saving of another kind: money, files, penalties, leftovers.

Measured on 604 replies written and labelled by hand (`tests/evaluation/claims.jsonl`). 514 were labelled
before the rules and halved by the hash of the text: on the half that the rules were made on precision .993
and recall 1.000, on the other 1.000 and .945. 90 longer ones, in the manner of small models answering the
stories, were written when the rules were done: 1.000 and .933. All came from one hand, which flatters.
"""

from __future__ import annotations

import re

from memeval.evaluation.lexicon import FORMS, STORE, Form
from memeval.evaluation.sentences import either, spoken, told

_STEMS = (
    *("sav", "stor", "note", "noti", "record", "rememb", "memor", "mind", "forget", "track", "hold", "jot"),
    *("wri", "wrote", "log", "put", "add", "updat", "chang", "correct", "replac", "set", "creat", "retain"),
    *("regist", "captur", "archiv", "file", "commit", "keep", "kept", "locked", "enter", "insert", "revis"),
    "amend",
)
_REACH = 240
"""Characters before a claim in which what it is said of is looked for."""
_BREAK = re.compile(r"[,;:!.(\[]\s|\s-\s|\bbut\s")
_NONE = re.compile(r"\b(?:no|nothing|none|never|neither|nor|not|nobody)\b|n't\b")
_REPORTED = re.compile(
    either(
        r"\b(?:what|everything|anything|all|things?|as|if|notes?|memor(?:y|ies)|facts?|information|data|ones?"
        r"|records?|list|when)(?: that| which)?",
        r"\b(?:found|find|see|searched|according to|based on)\b.*",
    )
    + " $"
)
_EARLIER = re.compile(
    either(
        r"(?: it| that| this)? (?:earlier|previously|before|above|last\b|notes\b|memories\b)",
        r"(?: [\w'-]+){0,4} (?:below|above)\b",
    )
)
_FILES = either(
    r"(?<!on )files?|documents?|changes|images?|photos?|pictures?|songs?|albums?|money|work|game|progress",
    r"pdf|videos?|essay|draft|column|table|results?|leftovers",
)
_OF_FILES = re.compile(rf"\b{_FILES}\b")
_FILE_NEXT = re.compile(rf"(?: (?:the|your|a|an|my|this|these|all|both)(?: [\w-]+)?)? {_FILES}\b")
_OF_EDITS = re.compile(
    rf"\b(?:{_FILES}|code|function|script|paragraph|wording|font|line|text|example|class|variable|letter)\b"
)
_FILING = re.compile(r"\b(?:sav|stor|record|archiv|captur|updat|creat)")
_IN_MEMORY = re.compile(rf".{{0,60}}?\b(?:my|your|to|in|long-term) {STORE}")
_HERE_ONLY = re.compile(
    r"\b(?:during|within|throughout|(?:for|in)(?: the (?:rest|remainder|duration) of)?) "
    r"(?:this|our|the)(?: current)? (?:conversation|chat|session|discussion|dialogue)\b(?! history)"
)
_CONDITIONAL = re.compile(
    either(
        r"\b(?:if|once|when|whenever|as soon as|until|after|unless|should) you(?:'d| would)?(?: just)? "
        + either(
            r"like|want|wish|prefer|tell|let|share|give|say|said|confirm|provide|ask me to|need me|allow",
            r"send|have|agree",
        ),
        r"\bif (?:needed|necessary|so|that's|that is)\b",
        r"^\W*(?:please |just |so |ok,? |okay,? |then )*"
        r"(?:tell|let me know|give|share|provide|send|say|feel free|ask|type|confirm)\b.*"
        r"\b(?:and|then|so) (?:i|we)\b",
    )
)


def claims_save(reply: str) -> bool:
    """Whether a reply says that something was or will be kept: "I've saved ...", "I'll remember ..."."""
    return any(_claims(told(sentence)) for sentence in spoken(reply))


def _claims(sentence: str) -> bool:
    if not any(stem in sentence for stem in _STEMS) or _HERE_ONLY.search(sentence):
        return False
    conditional = _CONDITIONAL.search(sentence) is not None
    return any(
        _holds(form, sentence, found.start(), found.end())
        for form in FORMS
        if any(need in sentence for need in form.needs) and not (form.promise and conditional)
        for found in form.pattern.finditer(sentence)
    )


def _holds(form: Form, sentence: str, start: int, end: int) -> bool:
    """Whether what the pattern found is said of a save that was or will be made."""
    reach = max(0, start - _REACH)
    clause = max((found.end() for found in _BREAK.finditer(sentence, reach, start)), default=reach)
    first_person = sentence.startswith(("i", "we"), start)
    before = sentence[clause:start]
    return not (
        _NONE.search(before)
        or (first_person and _REPORTED.search(before))
        or _EARLIER.match(sentence, end)
        or _elsewhere(form, sentence, start if first_person else clause, start, end)
    )


def _elsewhere(form: Form, sentence: str, clause: int, start: int, end: int) -> bool:
    """Whether files, texts or money were saved or changed: the subject, from `clause` on, or the object."""
    if form.edits:
        return _OF_EDITS.search(sentence, clause, end + 30) is not None
    if not _FILING.search(sentence, start, end) or _IN_MEMORY.match(sentence, end):
        return False
    return bool(_FILE_NEXT.match(sentence, end) or _OF_FILES.search(sentence, clause, end))
