"""What a reply says, by plain rules a person can check: does it name a value, claim a save, refuse, not know?

The rules are English, literal and the same for every design. They are diagnostics of text, no judge: what
they cannot see (irony, another language) is as wrong for one design as for the other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_SAVING = (
    r"(?:remembered|saved|stored|noted|recorded|memori[sz]ed|written\s+(?:it\s+)?down"
    r"|made\s+a\s+(?:mental\s+)?note)"
)
_CLAIMS = re.compile(
    rf"""\b(?:
        i(?:'|\s+ha)?ve\s+(?:\w+\s+){{0,2}}?{_SAVING}          # I have now saved, I've noted
      | i\s+(?:just\s+|also\s+)?{_SAVING}\b                    # I saved
      | (?:has|have)\s+been\s+(?:\w+\s+){{0,2}}?{_SAVING}      # has been successfully stored
      | (?:is|are)\s+(?:now\s+)?(?:saved|stored|recorded|noted)
      | i(?:'|\s+wi)ll\s+(?:\w+\s+){{0,2}}?                      # I'll remember, I will make a note
        (?:remember|keep\s+(?:that|this|it)\s+in\s+mind|make\s+(?:a\s+)?note|note|save|store)
      | (?:memory|preference|information|note)\s+(?:was\s+)?(?:successfully\s+)?
        (?:saved|stored|updated|recorded)
      | successfully\s+{_SAVING}
    )""",
    re.VERBOSE,
)
_OPENERS = re.compile(r"^\W*(?:noted|saved|stored|remembered|recorded)\b")
_DENIAL = re.compile(
    r"\b(?:not|never|cannot|unable to|can't|couldn't|won't|haven't|hasn't|wasn't|isn't|didn't)\s+"
    r"(?:\w+\s+){0,3}?(?:remember|save|store|note|record|memori)"
)
_REFUSES = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)"
    r"|i (?:can't|cannot|could not|couldn't|won't|do not|don't have)"
    r"|as an ai|unable to|not able to|failed to)\b"
)
_UNKNOWN = re.compile(
    r"\b(?:(?:do not|don't|didn't|did not) (?:\w+ )?(?:know|recall|remember|have)"
    r"|no (?:memor|information|record|idea)|not (?:sure|aware|certain)"
    r"|can(?:'t|not) (?:find|recall|remember)|couldn't find|could not find|unknown"
    r"|haven't (?:told|mentioned|shared)|have not (?:told|mentioned|shared))"
)


def normal(text: str) -> str:
    """Text as it is compared: NFKC, lower case, straight quotes, single spaces."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("‘", "'")
    return re.sub(r"\s+", " ", text).strip()


def names(text: str, values: Sequence[str]) -> bool:
    """Whether a value stands in the text as whole words: `Elixir` in "It's Elixir.", not in "elixirs"."""
    plain = normal(text)
    return any(_whole_word(value).search(plain) for value in values)


def echoes(reply: str, said: str) -> bool:
    """Whether a reply is only the user's words again, at least half of them, so that a value in it proves
    nothing. The bare value alone is an answer.
    """
    answer, asked = _words(reply), _words(said)
    return f" {answer} " in f" {asked} " and 2 * len(answer.split()) >= len(asked.split()) > 0


def claims_save(reply: str) -> bool:
    """Whether a reply says that something was or will be kept: "I've saved ...", "I'll remember ..."."""
    return any(
        (_CLAIMS.search(sentence) or _OPENERS.search(sentence)) and not _DENIAL.search(sentence)
        for sentence in re.split(r"(?<=[.!?\n])\s+", normal(reply))
        if not sentence.endswith("?")
    )


def refuses(reply: str) -> bool:
    """Whether a reply says that it cannot or will not."""
    return bool(_REFUSES.search(normal(reply)))


def admits_unknown(reply: str) -> bool:
    """Whether a reply says that it does not know."""
    return bool(_UNKNOWN.search(normal(reply)))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", normal(text)))


@lru_cache(maxsize=4096)
def _whole_word(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(normal(value))}(?!\w)")
