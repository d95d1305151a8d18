"""The lexicon of claims: the forms in which English says that something was or will be kept, each with an
example. What a form finds may still be no claim: see `claims`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memeval.evaluation.sentences import either


class Form(NamedTuple):
    """One way to claim a save. `needs`: strings of which one stands in every such sentence, for speed.
    `promise`: what is promised may hang on a condition. `edits`: the verb is one of editing too (`updated`),
    so that its object decides.
    """

    name: str
    example: str
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    promise: bool = False
    edits: bool = False


def _form(
    name: str, example: str, pattern: str, needs: str = "", *, promise: bool = False, edits: bool = False
) -> Form:
    return Form(name, example, re.compile(pattern), tuple(needs.split("|")), promise, edits)


_HOW = either(
    r"just|now|also|already|successfully|duly|carefully|safely|certainly|definitely|always|surely|gladly|really",
    r"happily|then|indeed|permanently|automatically|both|even|all|gone ahead and|went ahead and|go ahead and",
    r"be sure to|make sure to|make certain to|do my best to|try to|be|use the \w+ tool to",
)
_HOW = rf"(?:{_HOW} )*"
_NOTE = r"(?:an? )?(?:\w+ )?(?:notes?|record|memory|entry|reminder)"
_KEPT = either(
    r"remembered(?! (?:for|as|by))|saved(?! (?:you\b|money|time|the best|\$))|stored|noted(?! (?:for|by))",
    r"recorded(?! (?:in \d|by))|memori[sz]ed|logged|registered|archived|captured|retained",
    r"(?:written|jotted) (?:\w+ ){0,3}?down|filed (?:\w+ ){0,3}?away|committed (?:\w+ ){0,8}?to memory",
    rf"kept (?:\w+ ){{0,4}}?in mind|(?:made|taken|took|kept|created|added) {_NOTE}",
)
_KEPT = rf"{_KEPT}\b"
STORE = either(
    r"memory|memories|notes?|notebook|records?|profile|lists?|calendar|diary|reminders?|preferences?|file",
    r"knowledge(?: base)?|database",
)
STORE = rf"{STORE}\b"
_TOPIC = either(
    r"name|nickname|language|time|date|deadline|number|space|spot|address|appointment|birthday|anniversary",
    r"allergy|codename|budget|contact|rule|constraint|facts?|information|info|details?|request|wish|choice|entry",
)
_TOPIC = rf"(?:{STORE}|{_TOPIC}\b)"
_IT = either(
    r"this|that|it|these|those|your|down\b",
    r"the (?:fact|information|date|name|number|details?|preference)\b",
)
_THING = either(
    r"it|this|that|everything|your [\w' -]{1,30}?",
    rf"(?:the user's|my|the|these|all) (?:[\w'-]+ ){{0,3}}?{_TOPIC}(?: [\w,'-]+){{0,4}}?",
)
_INTO = rf"(?:[^\s.;]+ ){{1,8}}?(?:to|in|into|on|under) (?:my|your|the|our|long-term)? ?(?:[\w-]+ )?{STORE}"
_PUT = rf"(?:add|put|enter|insert|write|log|keep|place|move|store) {_INTO}"
_PUTTING = rf"(?:adding|putting|entering|inserting|writing|logging|keeping|placing|moving|storing) {_INTO}"
_HAS_PUT = rf"(?:added|put|entered|inserted|wrote|written|logged|kept|placed|moved|stored) {_INTO}"
_OLD = rf"(?:an? |the |your |my |our |this )(?:[\w-]+ ){{0,4}}?{_TOPIC}"
_CHANGE = rf"(?:update|change|correct|replace|amend|revise|set) {_OLD}"
_CHANGING = rf"(?:updating|changing|correcting|replacing|amending|revising|setting) {_OLD}"
_CHANGED = rf"(?:updated|changed|corrected|replaced|amended|revised|set) {_OLD}"

_START = r"(?:^|[,;:!.(\[]\s?|\s-\s)\W*(?:(?:and|then|ok|okay|well|alright|sure|got it) )?"
_STOP = r"\W*$|\s?[^\w\s'\"]"
_I_HAVE = rf"\b(?:i|we)(?:'ve| have)? {_HOW}"
_I_AM = r"\b(?:i'm|i am|we're|we are) (?:\w+ )?"
_I_WILL = either(
    r"\b(?:i|we)(?:'ll| will| shall)|\b(?:i'm|i am|we're) (?:\w+ )?going to",
    rf"\bi promise(?: to| i'll| i will)|{_START}will|\bassistant will|\blet me|\ballow me to",
)
_I_WILL = rf"{_I_WILL} {_HOW}"
_HAS_BEEN = rf"\b(?:(?:has|have)(?: now| just)?|(?:it|that|this)'s) been {_HOW}"
_SELF, _AM = "i |i'|we |we'", "i'm |i am |we're |we are "
_WILL = "ll |shall|going to|promise|let me|allow me"

FORMS = (
    _form("done", "I have now saved your deadline.", rf"{_I_HAVE}(?:called \w+ to )?{_KEPT}", _SELF),
    _form(
        "done beside another thing",
        "I have removed the old note and saved the new one.",
        rf"\b(?:i|we)(?:'ve| have)? (?:[\w'-]+ ){{1,8}}?and {_HOW}{_KEPT}",
        " and ",
    ),
    _form("put away", "I've added it to your list.", _I_HAVE + _HAS_PUT, _SELF),
    _form("changed", "I have updated my notes.", _I_HAVE + _CHANGED, _SELF, edits=True),
    _form(
        "done by tool",
        "I used the tool to store it.",
        rf"{_I_HAVE}(?:used|called) .{{1,40}}? to (?:save|store|remember)\b",
        "used |called ",
    ),
    _form(
        "got it down",
        "I've got that written down.",
        rf"\b(?:got|gotten) (?:that|it|this|everything) (?:all )?{_KEPT}",
        "got",
    ),
    _form(
        "in memory",
        "This is now part of my memory.",
        rf"\bnow (?:(?:part of|in|on) (?:my|your) (?:\w+ )?{STORE}|on (?:record|file)\b)"
        rf"|\b(?:is|are|it's|that's|have (?:it|that|this)) in (?:my|your) (?:\w+ )?{STORE} now\b",
        "now",
    ),
    _form(
        "has been kept",
        "Your preference has been saved.",
        rf"{_HAS_BEEN}(?:{_KEPT}|{_HAS_PUT}|(?:set|changed)\b.{{1,60}}? (?:in|to) my {STORE})",
        " been ",
    ),
    _form(
        "has been changed",
        "The note has been updated.",
        rf"{_HAS_BEEN}(?:updated|created)\b",
        " been ",
        edits=True,
    ),
    _form(
        "is kept",
        "Your order number is stored in my memory.",
        rf"{_START}(?:(?:\w+ )?(?:and|so|but|now|then|because|that) )?{_THING}"
        rf"(?:'s| is| are| was| were| will be) {_HOW}(?:{_KEPT}|{_HAS_PUT})",
    ),
    _form(
        "bare",
        "Got it, noted!",
        rf"{_START}{_HOW}(?:consider (?:it|this|that) )?(?:well )?"
        r"(?:saved|stored|noted|remembered|recorded|logged|updated|memori[sz]ed|jotted down"
        r"|locked in(?: my memory)?)"
        rf"(?={_STOP}|\s(?:that|to|as|under|with|your|it|this|down|successfully|thanks|in my"
        r"|for (?:later|future|next|you|reference))\b)",
    ),
    _form(
        "bare put",
        "Added to your notes.",
        rf"{_START}{_HOW}added (?:[\w-]+ ){{0,3}}?to (?:my |your )?{STORE}",
        "added",
    ),
    _form(
        "label",
        "Memory updated: user.language",
        rf"{_START}(?:your |the )?(?:[\w-]+ )?{_TOPIC}(?: id [\w.]+)?:? {_HOW}"
        r"(?:saved|stored|updated|recorded|added|created|noted)"
        rf"(?={_STOP}|\s(?:with|to|as|under|successfully|in)\b)",
    ),
    _form("status", "Save successful.", r"\bsav(?:e|ing) (?:successful|complete)|\bstatus: (?:saved|stored)"),
    _form("note to self", "Note to self: prefers Elixir.", r"\bnote to self\b", "note to self"),
    _form(
        "promise",
        "I'll make sure to remember that.",
        _I_WILL
        + either(
            r"remember\b|memori[sz]e|retain|not forget|never forget|make sure not to forget|jot|hold on ?to",
            r"(?:keep|keeping|bear) (?:[^\s.;]+ ){0,6}?in mind|keep (?:[\w']+ ){1,3}on file",
            r"keep (?:an? )?(?:record|note|track|copy)|(?:make|take) (?:a )?(?:\w+ )?note",
            rf"(?:note|save|store|record|log|commit) {_IT}|write (?:\w+ ){{0,4}}?down|remind you|{_PUT}",
        ),
        _WILL,
        promise=True,
    ),
    _form("promise to change", "I'll update your name.", _I_WILL + _CHANGE, _WILL, promise=True, edits=True),
    _form(
        "promise not to forget",
        "Won't forget it!",
        rf"(?:\b(?:i|we) |{_START})won't forget",
        "won't",
        promise=True,
    ),
    _form(
        "under way",
        "I'm saving this now.",
        _I_AM
        + either(
            r"saving|storing|noting|recording|remembering|memori[sz]ing",
            rf"(?:making|taking) (?:a )?(?:\w+ )?note|{_PUTTING}",
        ),
        _AM,
    ),
    _form("changing", "I'm updating my notes.", _I_AM + _CHANGING, _AM, edits=True),
    _form(
        "bare under way",
        "Saving this to memory...",
        _START
        + either(
            r"saving|storing|noting|recording|remembering|taking note|making (?:a )?note|adding|updating"
        )
        + r"(?: (?:that|this|it|your|of|to (?:my|memory|long)|information)\b|:)",
        "ing",
    ),
)
