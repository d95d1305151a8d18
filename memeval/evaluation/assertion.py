"""Whether a reply gives a value as its answer where it names it.

A mention does not count in a clause that denies knowledge, refuses or takes back ("I don't have any
information about Canberra", "I've deleted the note on Canberra"), in doubt whether it is so ("I'm not sure if
it is Canberra"), where it is negated itself ("not Sydney"), in a question ("Do you mean Canberra?"), in a
condition, or as a value that held before ("it used to be Monday", "changed from Monday to Tuesday").

It counts behind "but" and the like; as a guess ("I'm not sure, but I think it's Canberra"), for a guess gives
the value; in a tag question ("It's Elixir, right?"); told in the past without a contrast ("Your locker was
2718"); and under a prohibition, which is a fact of its own ("You must not upload to Skyvault").
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

from memeval.evaluation.sentences import either, question_start, sentences

_REACH = 240
"""Characters on either side of a mention that are looked at."""

_I_CANNOT = either(
    r"\b(?:i|we)(?: \w+)? (?:do|did|could|have|had)(?: not|n't)",
    r"\b(?:i|we)(?: \w+)? (?:cannot|can't|can not|never)",
    r"\b(?:i|we)(?:'m|'re| am| are| was| were) (?:\w+ )?(?:unable|not able|not allowed) to",
)
_TO_KNOW = either(
    r"know|have|recall|remember|find|found|see(?! why)|seem|locate|think|believe|hear|heard|been told",
    r"recogni[sz]e|tell|told|say|share|provide|give|reveal|disclose|confirm|verify|answer|help|assist|do|done",
    r"saved?|stored?|noted?|record(?:ed)?|keep|kept|access|determine|retrieve|discuss|use",
)
_KNOWLEDGE = either(
    r"information|info|records?|memor(?:y|ies)|notes?|mention|data|details?|knowledge|trace|entr(?:y|ies)",
    r"results?|recollection|match(?:es)?",
)
_ON_IT = either(
    r"about|on|of|regarding|concerning|for|related|that|whether|if|found|available|mention\w*|match\w*"
)
_DENIES = re.compile(
    either(
        rf"{_I_CANNOT} (?:\w+ ){{0,2}}?{_TO_KNOW}\b",
        r"\b(?:i|we) (?:won't|will not) (?:\w+ )?(?:tell|say|share|reveal|help|do)\b",
        r"(?:\bnot|n't) (?:\w+ )?(?:sure|certain|aware|familiar)\b",
        r"\b(?:unsure|uncertain|unclear|unknown)\b",
        rf"\bno (?:\w+ ){{0,2}}?{_KNOWLEDGE} (?:\w+ )?{_ON_IT}\b",
        r"\bno (?:idea|clue|notes)\b",
        r"\bnothing (?:\w+ ){0,4}?(?:about|on|regarding|concerning|named|called)\b",
        r"(?:\bnot|n't) (?:find|locate|retrieve|access|mention|say|show|include|contain|list)\b",
        r"\b(?:unable|failed) to (?:find|locate|retrieve|access|save|store)\b",
        r"\byou (?:haven't|have not|hadn't|never|didn't|did not) (?:\w+ )?"
        r"(?:told|tell|mention(?:ed)?|shared?|said|say|specif(?:y|ied)|provided?|given?|ask(?:ed)?)\b",
        r"\byou(?:'re| are|'ve| have)? (?:\w+ )?ask(?:ed|ing)? (?:me )?"
        r"(?:about|if|whether|for|what|which|who|where|when|how)\b",
        r"\byour question\b",
        r"\b(?:i|we)(?:'ve| have)? (?:\w+ )?(?:forgotten|forgot|deleted|removed|erased|discarded)\b",
    )
)
_SAVE_FOR = re.compile(
    r"\b(?:except|other than|apart from|aside from|besides|beyond|more than|than that|only that)\b"
)
_NEW_SUBJECT = r"(?:i|it|it's|you|you're|your)\b"
_BREAK = re.compile(
    either(
        r"; | - |\b(?:but|however|though|although|yet|instead,) ",
        rf"\band (?:{_NEW_SUBJECT}|(?:saved|stored|noted|set|added|replaced|updated|now)\b)",
        rf", (?:and )?{_NEW_SUBJECT}|, (?:so|here|i'd|i'm|i've|we|that|that's|this)\b",
    )
)
_CONCESSION = re.compile(r"\s*(?:although|though|while|whilst|even though|even if|since|because|as)\b[^,]*, ")
_CERTAIN_IF = (
    r"(?! (?:i (?:remember|recall|understand|understood|am not)|i'm not|memory serves|you(?:'re| are)))"
)
_CONDITION = re.compile(rf"\b(?:if|whether|unless|in case|suppose|assuming)\b{_CERTAIN_IF}[^,;:]*$")
_ABOUT = re.compile(r"^\W*(?:as for|regarding|about|concerning|as to|when it comes to) (?:\w+ ){0,3}\W?$")

_LINK = either(
    r"the|a|an|in|on|at|by|for|it|it's|is|was|were|be|been|being|called?|calling|named|known|as|your|you|my",
    r"with|number|simply|really|exactly|city|of|word|name|language",
)
_TO_IT = rf"(?:{_LINK} ){{0,4}}[\"'(]*$"
_NEGATED = re.compile(
    either(
        rf"(?:\bnot|n't|\bnever|\bneither|\bnor|\bunlike|\bexcept for) {_TO_IT}",
        rf"\b(?:not|neither) [\w-]+ (?:or|and|nor) {_TO_IT}",
    )
)
_ANY_MORE = re.compile(r"^[^.;,]{0,40}\b(?:any ?more|any longer)\b")
_NOT = re.compile(r"\bnot\b|n't\b|\bnever\b")
_NEGATED_AFTER = re.compile(
    either(
        r"^[\"')]* (?:is|was|are|were)(?: not|n't| no longer) "
        + either(
            r"your|the|my|it\b|what|correct|right|true|accurate|current|valid|known|in my|on record",
            r"mentioned|listed|recorded|saved|stored|found|something|one of",
        ),
        r"^[\"')]* (?:does|did)(?: not|n't) (?:appear|exist|match|show|come|ring)",
        r"^[\"')]* (?:is|was) (?:unknown|unclear)",
        r"^\W{1,3}(?:not found|no (?:results?|information|match|record))",
    )
)

_FORMER_WORD = r"(?:former|previous|outdated|prior|earlier|original|old|obsolete)"
_FORMER_NOUN = either(
    r"value|time|name|nickname|number|space|spot|preference|address|date|answer|choice|language|form|setting",
    r"slot|station|one",
)
_CHANGE = r"(?:chang|mov|switch|updat|correct|renam|shift|went|go|transition|revis|reschedul|adjust|modif)\w*"
_FORMER = re.compile(
    either(
        r"\b(?:used to|no longer) (?:\w+ ){0,5}$",
        r"\b(?:formerly|previously|originally|initially),? (?:(?:this|that|which|they|had|to|set|scheduled"
        rf"|parked|preferred|started|starting|time|value|{_LINK}) ){{0,6}}[\"'(]*$",
        r"\b(?:before|earlier|once|back then|at first|in the past)(?: that)?,? "
        rf"(?:it|this|that|you|the \w+|your \w+) (?:was|were|had) {_TO_IT}",
        r"\b(?:instead of|rather than|in place of|in lieu of|as opposed to|replac(?:es|ed|ing)"
        r"|supersed(?:es|ing)|overwriting) (?:\w+ ){0,3}$",
        rf"\b{_CHANGE} (?:[^.;]{{0,80}} )?from (?:(?!to )\w+ ){{0,3}}$",
        rf"\b{_FORMER_WORD} (?:\w+ )?{_FORMER_NOUN}(?: (?:was|is|of|at|being))?[:,]? [\"'(]*$",
    )
)
_EXCHANGED = re.compile(
    r"\b(?:replac|chang|swap|switch|updat|correct|renam)(?:e|es|ed|ing|ped|ping) "
    r"(?:(?!(?:to|as|with|by|into) )[\w'-]+ ){0,4}$"
)
_FOR_ANOTHER = re.compile(r"^[\"')]* (?:to|with|by|into) ")
_REPLACED = re.compile(
    either(
        r"^\W{0,4}(?:-+>|=+>|→|➜|➔)",
        r"^ ?\((?:old|outdated|previous|former|no longer)\b",
        r"^\W* (?:is|was|has been|got) (?:now )?(?:replaced|superseded|outdated|obsolete|overwritten)\b",
        r"^\W* (?:has been|was|is) (?:now )?(?:changed|moved|updated|renamed|corrected) to\b",
        rf"^\W* (?:is|was) (?:your|the|my) {_FORMER_WORD}\b",
    )
)
_WAS = re.compile(rf"\b(?:was|were|had been|called) {_TO_IT}")
_CONTRAST = re.compile(
    either(
        r"^[^.;]{0,120}\b(?:now|currently|changed|no longer|nowadays|these days)\b",
        r"^[^.;]{0,30}\buntil\b",
        r"^,? (?:before|previously|formerly|originally|at first|in the past)\W*(?:$|,|and|but)",
    )
)
_CONTRAST_NEXT = re.compile(
    r"\W*(?:but )?"
    + either(
        r"now (?:it|the|your|you|at|on)\b", r"[^.?]{0,40}(?:(?:is|are|'s|'re) now|currently|no longer)\b"
    )
)


def given(text: str, mentions: Iterable[tuple[int, int]]) -> bool:
    """Whether one of the mentions, starts and ends in the folded text, gives the value as the answer."""
    bounds = sentences(text)
    starts = [start for start, _ in bounds]

    @cache
    def asks_from(first: int, last: int) -> int:
        return first + question_start(text[first:last])

    for start, end in mentions:
        first, last = bounds[bisect_right(starts, start) - 1]
        if start >= asks_from(first, last):
            continue
        last = max(last, end)
        before = text[max(first, start - _REACH) : start]
        if _asserted(before, text[end : min(last, end + _REACH)], text[last : last + 80]):
            return True
    return False


def _asserted(before: str, after: str, following: str) -> bool:
    """Whether a value is told, from what stands before and after it in its sentence and what follows that."""
    return not (
        _denied(before, after)
        or _CONDITION.search(before)
        or _NEGATED.search(before)
        or _NEGATED_AFTER.search(after)
        or (_ANY_MORE.search(after) and _NOT.search(before))
        or _held_before(before, after, following)
    )


def _denied(before: str, after: str) -> bool:
    """Whether the clause that names the value denies knowledge, refuses or takes back."""
    if conceded := _CONCESSION.match(before):
        before = before[conceded.end() :]
    if _ABOUT.search(before) and _DENIES.search(f"{after} "):
        return True
    breaks = [found.start() for found in _BREAK.finditer(before)]
    clause = before[breaks[-1] :] if breaks else before
    denial = _DENIES.search(clause)
    return denial is not None and not _SAVE_FOR.search(clause, denial.end())


def _held_before(before: str, after: str, following: str) -> bool:
    """Whether the value is one that held once and no longer does."""
    return bool(
        _FORMER.search(before)
        or _REPLACED.search(after)
        or (_EXCHANGED.search(before) and _FOR_ANOTHER.search(after))
        or (_WAS.search(before) and (_CONTRAST.search(after) or _CONTRAST_NEXT.match(following)))
    )
