"""The plain rules by which a reply is read."""

from __future__ import annotations

import pytest

from memeval.evaluation.language import admits_unknown, claims_save, echoes, names, refuses


@pytest.mark.parametrize(
    "reply",
    [
        "I've saved that for you.",
        "Got it! I'll remember that you prefer Elixir.",
        "Your preference has been successfully stored.",
        "Noted!",
        "I have made a note of it.",
        "Memory saved: user.language",
        "Sure, I will keep that in mind.",
        "You have been saved. It is now recorded.",
        "I’ve noted your deadline.",
    ],
)
def test_a_claimed_save_is_seen(reply: str) -> None:
    assert claims_save(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "Elixir is a fine language.",
        "I remember that evening well.",
        "I have not saved anything.",
        "I can't remember things between sessions.",
        "Shall I save that?",
        "Do you want me to remember it? I will remember it?",
        "You noted that already.",
        "I won't remember this.",
    ],
)
def test_what_is_no_claim_is_not_taken_for_one(reply: str) -> None:
    assert not claims_save(reply)


def test_values_are_found_as_whole_words_whatever_their_case() -> None:
    assert names("It is ELIXIR!", ["Elixir"])
    assert not names("elixirs", ["Elixir"])
    assert names("Use C++ here", ["C++"])
    assert names("am 14. März", ["14. märz"])
    assert not names("14471", ["4471"])
    assert names("the\nnorth  gate", ["North Gate"])


def test_an_echo_is_the_users_own_words() -> None:
    said = "Please remember my preferred language is Elixir."
    assert echoes("My preferred language is Elixir!", said)
    assert not echoes("Your preferred language is Elixir.", said)
    assert not echoes("Elixir.", said)
    assert not echoes("", said)


def test_refusing_and_not_knowing_are_heard() -> None:
    assert refuses("I'm sorry, I can't do that.")
    assert not refuses("Done: Elixir.")
    assert admits_unknown("I don't know your language.")
    assert admits_unknown("No memories found, so I have no information on that.")
    assert not admits_unknown("You prefer Elixir.")
