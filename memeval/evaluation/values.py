"""Values in a text: the forms that count as the same value, found as whole words.

Folding makes alike what a reader takes for alike: case, accents (`cafe`, `café`), `ß` and `ss`, all dashes
and quotation marks, Markdown emphasis, invisible characters. Beyond that a value that is wholly

- a number is found with thousands set apart by comma, space or apostrophe and, below a hundred, in words:
  2718 in "2,718", 7 in "seven". A point is a decimal point: 2718 is not in "2.718". Nor is a number in a
  longer one: 53 not in 1953, 53.2, 53rd, 50-53, 53 million; but in $53, 53%, 53/100 and 53.00. The
  word "one" stands for 1 only where the value itself says "one": it is a pronoun too often.
- a time is found with a point, a leading zero and on either clock: 19:30 in "7.30 pm".
- a date with its month in letters, or an ISO date, is found in each such form and as 14.03.2026, day first,
  where day and month agree, and the year if the value has one. Forms in mere figures with strokes stay
  what they are: 3/14 may be listed as a value.

Spaces and hyphens between words are alike. `_` ends a word, so a value is found in a key such as
`language_elixir`. A plural is another word; a possessive is not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‘’‛′ʼ´＇", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        **dict.fromkeys("‐‑‒–−﹣－", "-"),
        **dict.fromkeys("—―", " - "),
        **dict.fromkeys("\u00ad\u061c\u180e\u2060\u2061\u2062\u2063\u2064\ufe0e\ufe0f\ufeff"),
        **{chr(code): None for code in (*range(0x200B, 0x2010), *range(0x202A, 0x202F))},
    }
)
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})
_ACCENTS = re.compile("[\u0300-\u036f]")
_EMPHASIS = re.compile(r"`+|~~|(?<![^\W_])[*_]+(?=[^\s*_])|(?<=[^\s*_])[*_]+(?![^\W_])|(?<!\w)\*+(?!\w)")
_BLANKS = re.compile(r"[^\S\n]+")

_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_NUMBERS = (*_ONES, *(f"{ten} {one}".removesuffix(" zero") for ten in _TENS for one in _ONES[:10]))
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = r"([a-z]{3,9})\.?"
_DAY_FIRST = re.compile(rf"(?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -]{_MONTH}(?:,? (\d{{4}}))?")
_MONTH_FIRST = re.compile(rf"{_MONTH}[ -](?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?:,? (\d{{4}}))?")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{1,2})(?:[:.](\d{2}))? ?([ap])\.?m\.?|(\d{1,2}):(\d{2})")
_INTEGER = re.compile(r"\d{1,3}(?:[, ']\d{3})+|\d+")
_DECIMAL = re.compile(r"(\d+)[.,](\d+)")
_LONGER = r"hundred|thousand|million|billion|trillion|dozen|point [a-z]|and a (?:half|quarter)"


def folded(text: str) -> str:
    """Text as it is searched: NFKC, lower case, accents, typographic signs and emphasis folded, line breaks
    kept, other blanks single.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_SIGNS)).translate(_SIGNS)
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", text)).casefold().translate(_LETTERS)
    else:
        text = text.lower()
    if any(sign in text for sign in "*_`~"):
        text = _EMPHASIS.sub("", text)
    return _BLANKS.sub(" ", text).strip()


def places(text: str, values: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where in a folded text the values stand, as start and end, value by value."""
    for value in values:
        yield from (found.span() for found in _pattern(value).finditer(text))


@lru_cache(maxsize=4096)
def _pattern(value: str) -> re.Pattern[str]:
    plain = folded(value)
    forms = _date_forms(plain) or _time_forms(plain) or _number_forms(plain) or _word_forms(plain)
    return re.compile("|".join(forms) or r"(?!)")


def _word_forms(plain: str) -> list[str]:
    """The value as it is written, blank and hyphen alike except between figures."""
    if not plain:
        return []
    parts = re.split(r"(?<=[^\W\d])[\s-]+(?=\w)|(?<=\w)[\s-]+(?=[^\W\d])", plain)
    inner = r"[\s-]+".join(re.escape(part).replace(r"\ ", r"\s+") for part in parts)
    first, last = plain[0], plain[-1]
    before = "" if _UNSPACED.match(first) else _START + (r"(?<!\d[.,:])" if first.isdigit() else "")
    after = "" if _UNSPACED.match(last) else _END + (r"(?![.,:]\d)" if last.isdigit() else "")
    return [before + inner + after + (r"(?!\+\+|#)" if last.isalnum() else "")]  # C is not C++


def _number_forms(plain: str) -> list[str]:
    words = plain.replace("-", " ")
    if words in _NUMBERS:
        return [_figures(str(_NUMBERS.index(words))), _in_words(words)]
    if _INTEGER.fullmatch(plain):
        digits = re.sub(r"\D", "", plain)
        number = int(digits) if len(digits) < 3 and str(int(digits)) == digits else 1
        return [_figures(digits), *([_in_words(_NUMBERS[number])] if number != 1 else [])]
    if found := _DECIMAL.fullmatch(plain):
        whole, part = found.groups()
        sign = re.escape(plain[len(whole)]) if len(part) == 3 else "[.,]"  # 2.718 and 2,718 differ
        return [rf"{_START}(?<!\d[.,:]){whole}{sign}{part}{_END}(?![.,:]\d)"]
    return []


def _figures(digits: str) -> str:
    """A whole number in figures, not as a part of a longer one, a range, a time or a date."""
    head = len(digits) % 3 or 3
    groups = [digits[:head], *(digits[at : at + 3] for at in range(head, len(digits), 3))]
    inner = digits if digits.startswith("0") else "[, ']?".join(groups)
    before = rf"{_START}(?<!\d[.,:/'-])(?<!\s[.-])(?<!^-)"
    if len(digits) == 3:
        before += r"(?<!(?<!\d\d\d)\d )"  # the end of 2 718
    after = rf"(?:\.00?(?!\d))?{_END}(?![.,:'-]\d)(?![ -](?:{_LONGER}))"
    if len(digits) <= 3:
        after += r"(?! \d{3}(?!\d))"  # the beginning of 2 718
    return before + inner + after


def _in_words(words: str) -> str:
    """A number below a hundred in words, not as a part of a longer one."""
    before = _START + "".join(
        rf"(?<!{word})" for word in ("hundred ", "hundred and ", "thousand ", "thousand and ", "point ")
    )
    after = rf"{_END}(?![ -](?:{_LONGER}))"
    if words in _ONES[1:10]:
        before += "".join(rf"(?<!{ten}[ -])" for ten in _TENS)
    if words in _TENS:
        after += rf"(?![ -](?:{'|'.join(_ONES[1:10])})\b)"
    return before + words.replace(" ", "[ -]?") + after


def _time_forms(plain: str) -> list[str]:
    """Where the value leaves morning or evening open, so may the text."""
    found = _TIME.fullmatch(plain)
    if not found:
        return []
    hour, minute, half = int(found[1] or found[4]), found[2] or found[5] or "00", found[3]
    if hour > 23 or int(minute) > 59:
        return []
    start, end = rf"(?:{_START}|(?<=\dt))(?<!\d[.,:])", rf"{_END}(?![.:]\d)"
    minutes = rf"[:.]{minute}(?::00(?:\.0+)?z?)?"
    if minute == "00":
        minutes += r"|(?=\s?[ap]\.?m)"  # 7 pm
    morning, evening = r" ?a\.?m\b", r" ?p\.?m\b"
    if not half and 1 <= hour <= 12:
        return [rf"{start}0?{hour}(?:{minutes})(?:{morning}|{evening}|{end})"]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    side, other = (evening, morning) if hour > 11 else (morning, evening)
    return [
        rf"{start}0?{hour}(?:{minutes}){end}(?!{other})",
        rf"{start}0?{hour % 12 or 12}(?:{minutes}){side}",
    ]


def _date_forms(plain: str) -> list[str]:
    if found := _ISO.fullmatch(plain):
        year, month, day = found[1], int(found[2]), int(found[3])
    elif found := _DAY_FIRST.fullmatch(plain):
        year, month, day = found[3], _month(found[2]), int(found[1])
    elif found := _MONTH_FIRST.fullmatch(plain):
        year, month, day = found[3], _month(found[1]), int(found[2])
    else:
        return []
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return []
    name = _MONTHS[month - 1]
    letters = rf"(?:{name}|{name[:3]}{'t?' if month == 9 else ''}\b\.?)"
    the_day = rf"0?{day}(?:st|nd|rd|th)?"
    of_year = rf",? ?{year}" if year else ""
    any_year = year or r"\d{4}"
    return [
        rf"{_START}(?<!\d[.,:/-]){the_day}(?: day)?(?: of)?[\s-]{letters}{of_year}{_END}",
        rf"{_START}{letters}[\s-](?:the )?{the_day}{of_year}{_END}(?![.:]\d)",
        rf"{_START}{any_year}[-/.]{month:02}[-/.]{day:02}(?!\d)",
        rf"{_START}(?<!\d[.])0?{day}\. ?0?{month}\.(?: ?{any_year}{_END})" + ("" if year else "?"),
    ]


def _month(letters: str) -> int:
    """1 to 12, or 0 where the letters are no month."""
    short = letters.removesuffix("t") if letters == "sept" else letters
    return next((at for at, name in enumerate(_MONTHS, 1) if short in (name, name[:3])), 0)
