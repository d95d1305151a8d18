"""What a reply says, by plain rules a person can check: does it name or state a value, claim a save, refuse,
not know?

The rules are English, literal and the same for every design. They are diagnostics of text, no judge: what
they cannot see (irony, another language) is as wrong for one design as for the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memeval.evaluation.assertion import given
from memeval.evaluation.claims import claims_save
from memeval.evaluation.denials import admits_unknown, refuses
from memeval.evaluation.values import folded, places

__all__ = ["admits_unknown", "claims_save", "echoes", "names", "normal", "refuses", "states"]


def normal(text: str) -> str:
    """Text as it is compared: `values.folded`, in one line."""
    return re.sub(r"\s+", " ", folded(text)).strip()


def names(text: str, values: Sequence[str]) -> bool:
    """Whether a value stands in the text as whole words, in one of its forms (`values`): `Elixir` in "It's
    Elixir.", not in "elixirs". Right for records and arguments; of a reply ask what it `states`.
    """
    return any(True for _ in places(folded(text), values))


def states(text: str, values: Sequence[str]) -> bool:
    """Whether a value is given as the answer, not only named in a denial, a negation, a question or as what
    held before (`assertion`): `Elixir` in "It's Elixir, not Erlang.", not in "I know nothing about Elixir."
    """
    plain = folded(text)
    return given(plain, places(plain, values))


def echoes(reply: str, said: str) -> bool:
    """Whether a reply is only the user's words again, at least half of them, so that a value in it proves
    nothing. The bare value alone is an answer.
    """
    answer, asked = _words(reply), _words(said)
    return f" {answer} " in f" {asked} " and 2 * len(answer.split()) >= len(asked.split()) > 0


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", normal(text)))
