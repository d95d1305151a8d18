"""Gold answers as values that a reply can be held to word for word, and reasons why some cannot."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

MOST_WORDS = 5
"""Words of an answer, or of each part of a list. Longer ones are told in other words by whoever is right."""
MOST_SIGNS = 200

YES_OR_NO = "the answer is yes or no, words that stand in any reply"
RELATIVE = "the answer is a date told by another date (the week before ...)"
TOO_LONG = f"the answer is longer than {MOST_WORDS} words, so nobody right says it word for word"

_BARE = re.compile(r"(?:(?:in|on|at)\s+)?(?:(?:the|an?|his|her|their|my|your)\s+)?(?=\S)", re.IGNORECASE)
_YES_OR_NO = re.compile(r"(?:(?:most )?likely |probably |presumably )?(?:yes|no|not)\b", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(?:before|after|prior to|following)\b.*\d{4}", re.IGNORECASE)
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_MONTH = re.compile(rf"\b(?:{_MONTHS})\b", re.IGNORECASE)
_DATE = re.compile(rf"(?:\d{{1,2}}\s*)?(?:{_MONTHS})\s*(?:\d{{1,2}})?,?\s*(?:\d{{4}})?", re.IGNORECASE)
_LIST = re.compile(r"\s*(?:[;&]|,(?=\s|[^\W\d]))\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_SPELT = re.compile(r"(?:hundred|thousand|million|billion|and|point|half|to|or|\d)\b", re.IGNORECASE)
"""What goes on with a number: `five hundred` is not five of something."""
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_QUOTES = "\"'“”‘’ "


def unfit(gold: str) -> str:
    """Why no reply can be held to an answer; nothing if one can."""
    text = gold.strip(_QUOTES)
    if _YES_OR_NO.match(text):
        return YES_OR_NO
    if _RELATIVE.search(text):
        return RELATIVE
    long = any(len(part.split()) > MOST_WORDS or len(part) > MOST_SIGNS for part in parts(text))
    return TOO_LONG if long else ""


def parts(gold: str) -> list[str]:
    """The parts of an answer that is a list, `camping, pottery and painting`; else the answer alone.

    Whoever says the whole says every part, in any order, so a list is never harder than its own words.
    """
    text = bare(gold)
    if _DATE.fullmatch(text) or gold.strip()[:1] in "\"“'":
        return [text]
    found = [bare(part) for part in _LIST.split(text)]
    return found if len(found) > 1 and all(re.search(r"\w", part) for part in found) else [text]


def bare(gold: str) -> str:
    """An answer without what a reply need not repeat: quotes, the last full stop, `in`, `the`."""
    text = gold.strip(_QUOTES)
    return _BARE.sub("", text.removesuffix(".").strip(_QUOTES), count=1)


def forms(gold: str, question: str = "") -> list[str]:
    """The forms of one answer, the plainest first. Case, a number alone, dates and times are not spelt out:
    whoever looks for a value finds them in each of their forms.
    """
    text = bare(gold)
    found = [text, gold.strip(_QUOTES)]
    if month := re.fullmatch(rf"(\d{{1,2}}\s*)?({_MONTHS}),?\s*(\d{{4}})", text, re.IGNORECASE):
        found.append(f"{(month[1] or '').strip()} {month[2]} {month[3]}".strip())
    number, _, what = text.partition(" ")
    count = None if _SPELT.match(what) or _DATE.fullmatch(text) else _counted(number)
    if count is not None and what:
        found += [f"{said} {what}" for said in _said(count)]
        if re.search(r"\bhow (?:many|much|old)\b|\bnumber of\b", question, re.IGNORECASE):
            found += _said(count)
        found += [said for said, times in _TIMES.items() if what == "times" and times == count]
    if text.lower() in _TIMES:
        found += [f"{said} times" for said in _said(_TIMES[text.lower()])]
    if text.startswith("$"):
        found.append(text[1:])
    return list(dict.fromkeys(form for form in found if form))


def named(plain_text: str, values: Iterable[str]) -> bool:
    """Whether a value stands in a text, made `plain` before, as whole words."""
    found = (value for value in map(_plain_value, values) if value in plain_text)
    return any(_whole(value).search(plain_text) for value in found)


def named_in(plain_text: str, answer: Sequence[Sequence[str]]) -> bool:
    """Whether every part of an answer stands in a text, made `plain` before."""
    return bool(answer) and all(named(plain_text, part) for part in answer)


def is_figure(answer: Sequence[Sequence[str]]) -> bool:
    """Whether every part of an answer is or begins with a number, or names a month: what one works out."""
    return bool(answer) and all(
        re.search(r"\d", part[0]) or _counted(part[0].split()[0]) is not None or _MONTH.search(part[0])
        for part in answer
    )


def plain(text: str) -> str:
    """Text as it is compared: case, quotes, hyphens and spaces, `p.m.` and `pm` made alike."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    text = re.sub(r"\b([ap])\.m\b\.?", r"\1m", re.sub(r"[‐‑–]", "-", text))
    return " ".join(re.sub(r"(?<=\w)-(?=\w)", " ", text).split())


def _counted(word: str) -> int | None:
    if word.isdecimal():
        return int(word) if len(word) < 10 else None
    return _NUMBERS.index(word.lower()) if word.lower() in _NUMBERS else None


def _said(count: int) -> list[str]:
    return [str(count), *_NUMBERS[count : count + 1]]


@lru_cache(maxsize=4096)
def _plain_value(value: str) -> str:
    return plain(value)


@lru_cache(maxsize=4096)
def _whole(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
