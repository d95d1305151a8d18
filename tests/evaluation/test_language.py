"""The plain rules by which a reply is read."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from memeval.evaluation.language import (
    admits_unknown,
    claims_save,
    echoes,
    names,
    normal,
    refuses,
    states,
)
from memeval.evaluation.lexicon import FORMS, Form

CLAIMS = [
    json.loads(line)
    for line in Path(__file__).with_name("claims.jsonl").read_text(encoding="utf-8").splitlines()
]


def part_of(row: dict[str, Any]) -> str:
    """Rules are made on `dev` only. `reply` was written after them; the rest is halved by its text alone."""
    if row["kind"] == "reply":
        return "reply"
    return "dev" if hashlib.sha256(row["text"].encode()).digest()[0] % 2 == 0 else "test"


@pytest.mark.parametrize(
    ("part", "precision", "recall"), [("dev", 0.97, 0.97), ("test", 0.95, 0.9), ("reply", 0.95, 0.88)]
)
def test_the_lexicon_of_claims_is_as_good_as_it_says(part: str, precision: float, recall: float) -> None:
    """The floors lie a little under what was measured; the figures stand in the docstring of the lexicon."""
    rows = [(row, claims_save(row["text"])) for row in CLAIMS if part_of(row) == part]
    right = sum(row["claims"] and seen for row, seen in rows)
    seen_precision = right / sum(seen for _, seen in rows)
    seen_recall = right / sum(row["claims"] for row, _ in rows)
    print(f"{part}: {len(rows)} sentences, precision {seen_precision:.3f}, recall {seen_recall:.3f}")
    assert len(rows) >= 90
    assert seen_precision >= precision
    assert seen_recall >= recall


def test_the_labelled_sentences_are_distinct_and_of_both_labels() -> None:
    assert len({row["text"] for row in CLAIMS}) == len(CLAIMS) >= 600
    assert 0.4 < sum(row["claims"] for row in CLAIMS) / len(CLAIMS) < 0.6


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
        "I'll remember that the code is 53.",
        "The code you told me has been saved.",
        "I've noted your work hours.",
        "I've saved your favourite song to memory.",
        "I'll keep that in mind for our next conversation.",
        "I've kept that in mind.",
        "I'll save the information you provided.",
        "I have updated your preferred form of address.",
        "I'm happy to say that I've saved it.",
        "I've stored it in our conversation history.",
        "Ok noted",
        "It's been saved!",
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
        "I've deleted the note.",
        "I'll check what I saved.",
        "I've written a poem for you.",
        "I've written down the steps below.",
        "I have created a list of ideas.",
        "I'll write it in Python.",
        "I will add your name to the letter.",
        "I've updated the date in your draft.",
        "Here are the notes I've taken: Elixir.",
        "If I saved it, I'd find it.",
        "That was noted by Aristotle.",
        "Nothing I have saved mentions it.",
        "",
    ],
)
def test_what_is_no_claim_is_not_taken_for_one(reply: str) -> None:
    assert not claims_save(reply)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_each_form_of_the_lexicon_finds_its_example(form: Form) -> None:
    assert form.pattern.search(normal(form.example))
    assert claims_save(form.example)


def test_values_are_found_as_whole_words_whatever_their_case() -> None:
    assert names("It is ELIXIR!", ["Elixir"])
    assert not names("elixirs", ["Elixir"])
    assert names("Use C++ here", ["C++"])
    assert names("am 14. März", ["14. märz"])
    assert not names("14471", ["4471"])
    assert names("the\nnorth  gate", ["North Gate"])
    assert names("Erlang or Elixir", ["OCaml", "Elixir"])
    assert not names("anything", [])
    assert not names("anything *", ["*"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a cafe", "café"),
        ("Gruyère, please", "Gruyere"),
        ("STRASSE", "Straße"),
        ("Smørrebrød", "smorrebrod"),
        ("Ｅｌｉｘｉｒ", "Elixir"),
        ("Canberra's lake", "Canberra"),
        ("Canberra’s lake", "Canberra"),
        ("O’Brien", "O'Brien"),
        ("**Elixir**", "Elixir"),
        ("_Elixir_", "Elixir"),
        ("__Elixir__", "Elixir"),
        ("`Elixir`", "Elixir"),
        ("***Elixir***'s", "Elixir"),
        ("~~Elixir~~", "Elixir"),
        ("language_elixir", "Elixir"),
        ("call snake_case now", "snake_case"),
        ("Grebe **Blue**", "Grebe Blue"),
        ("Grebe\u2011Blue", "Grebe Blue"),
        ("Grebe Blue", "Grebe-Blue"),
        ("Bluetail\nHeron", "Bluetail Heron"),
        ("B–417", "B-417"),
        ("El\u00adix\u200bir", "Elixir"),
        ("Quillbase—as you said", "Quillbase"),
        ("私は東京に住む", "東京"),
        (".NET 8", ".NET"),
        ("with --dry-run", "--dry-run"),
    ],
)
def test_forms_that_are_the_same_word(text: str, value: str) -> None:
    assert names(text, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("C++", "C"),
        ("C#", "C"),
        ("ASP.NET", ".NET"),
        ("Canberras", "Canberra"),
        ("B-4170", "B-417"),
        ("v1.8.2", "v1.8"),
        ("Python 3.11.4", "3.11"),
    ],
)
def test_forms_that_are_another_word(text: str, value: str) -> None:
    assert not names(text, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2,718", "2718"),
        ("2 718", "2718"),
        ("2\u202f718", "2718"),
        ("2'718", "2718"),
        ("number 2718.", "2,718"),
        ("1,234,567", "1234567"),
        ("$53", "53"),
        ("53%", "53"),
        ("53/100", "53"),
        ("53.00", "53"),
        ("a score of 53—not bad", "53"),
        ("fifty-three", "53"),
        ("Fifty three", "53"),
        ("7", "seven"),
        ("seven spaces", "7"),
        ("7-space", "7"),
        ("zero", "0"),
        ("number one", "one"),
        ("14,2", "14.2"),
        ("3.140 crowns", "3.140"),
        ("18.4k", "18.4k"),
    ],
)
def test_forms_that_are_the_same_number(text: str, value: str) -> None:
    assert names(text, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("153", "53"),
        ("1953", "53"),
        ("53.2", "53"),
        ("0.53", "53"),
        ("53,000", "53"),
        ("53 000", "53"),
        ("53rd", "53"),
        ("50-53", "53"),
        ("53–55", "53"),
        ("it is -53", "53"),
        ("53 million", "53"),
        ("12:53", "53"),
        ("2.718", "2718"),
        ("27180", "2718"),
        ("2 718", "718"),
        ("2,718", "718"),
        ("14.25", "14.2"),
        ("3,140", "3.140"),
        ("twenty-seven", "7"),
        ("27", "seven"),
        ("seventh", "7"),
        ("seven hundred", "7"),
        ("one hundred and seven", "7"),
        ("seven point five", "7"),
        ("seven and a half", "7"),
        ("twenty-one", "20"),
        ("no one", "1"),
    ],
)
def test_forms_that_are_another_number(text: str, value: str) -> None:
    assert not names(text, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.30", "7:30"),
        ("07:30", "7:30"),
        ("7:30 am", "7:30"),
        ("7:30 pm", "19:30"),
        ("19:30", "7:30 p.m."),
        ("at 7 pm", "19:00"),
        ("at 7pm", "7:00 pm"),
        ("2026-03-03T09:35:00Z", "9:35"),
        ("March 14", "14 March"),
        ("the 14th of March", "14 March"),
        ("14 Mar", "14 March"),
        ("March 14th, 2026", "14 March"),
        ("14-Mar-2026", "14 March"),
        ("2026-03-14", "14 March"),
        ("14.03.2026", "14 March"),
        ("am 14.3.", "14 March"),
        ("the 14th of march", "March 14"),
        ("Sept. 3", "3 September"),
        ("14 March 2026", "2026-03-14"),
        ("March 14, 2026", "14 March 2026"),
        ("2026-03-14", "03-14"),
    ],
)
def test_forms_that_are_the_same_time_or_date(text: str, value: str) -> None:
    assert names(text, [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17:30", "7:30"),
        ("7:30 am", "19:30"),
        ("7:30 pm", "7:30 am"),
        ("7:30", "19:30"),
        ("15 March", "14 March"),
        ("March 141", "14 March"),
        ("March 1", "14 March"),
        ("12-14 March", "14 March"),
        ("2026-04-14", "14 March"),
        ("14 markets", "14 March"),
        ("14 March 2027", "14 March 2026"),
        ("14 March", "14 March 2026"),
    ],
)
def test_forms_that_are_another_time_or_date(text: str, value: str) -> None:
    assert not names(text, [value])


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Canberra.", "Canberra"),
        ("It's Canberra, not Sydney.", "Canberra"),
        ("You said Canberra. I don't have more details.", "Canberra"),
        ("Not Sydney but Canberra.", "Canberra"),
        ("It isn't Sydney, it's Canberra.", "Canberra"),
        ("Not only Canberra but also Perth.", "Canberra"),
        ("It was Monday, now Tuesday.", "Tuesday"),
        ("It used to be Monday, but it is Tuesday now.", "Tuesday"),
        ("The day was changed from Monday to Tuesday.", "Tuesday"),
        ("Your stand-up starts at 10:50 instead of 9:35.", "10:50"),
        ("9:35 → 10:50", "10:50"),
        ("I've updated your preferred name to Fennimore for future conversations.", "Fennimore"),
        ("I'm not sure, but I think it's Canberra.", "Canberra"),
        ("I think it's Canberra, but I'm not certain.", "Canberra"),
        ("I don't have a calendar, but your anniversary is on 9 November.", "9 November"),
        ("Although I don't know much about it, your project uses Quillbase.", "Quillbase"),
        ("I don't know anything about it except that you like Elixir.", "Elixir"),
        ("I have no other notes; your language is Elixir.", "Elixir"),
        ("I'm sorry for the confusion. It's Elixir.", "Elixir"),
        ("I'm sorry to hear that, Fennimore.", "Fennimore"),
        ("Your locker number was 2718.", "2718"),
        ("You previously told me that your locker is number 2718.", "2718"),
        ("You mentioned Canberra earlier.", "Canberra"),
        ("As you said before, it's Canberra.", "Canberra"),
        ("According to a previous note, it is Canberra.", "Canberra"),
        ("In our previous conversation you said Elixir.", "Elixir"),
        ("Based on my notes, the application is due before 14 March.", "14 March"),
        ("If I remember correctly, it's Elixir.", "Elixir"),
        ("If I recall correctly it's Elixir.", "Elixir"),
        ("It's Elixir, is there anything else?", "Elixir"),
        ("Your language is Elixir, right?", "Elixir"),
        ("It's Elixir, isn't it?", "Elixir"),
        ("Which language? Elixir!", "Elixir"),
        ("Your dog is called Pumpernickel. What would you like to know about Pumpernickel?", "Pumpernickel"),
        ("You must not upload anything to Skyvault.", "Skyvault"),
        ("Nothing may be uploaded to Skyvault.", "Skyvault"),
        ("No project data may be uploaded to Skyvault.", "Skyvault"),
        ("I won't upload anything to Skyvault.", "Skyvault"),
        ("You can't eat quinces.", "quinces"),
        ("Quinces are not safe for you.", "quinces"),
        ("I would avoid quinces, since you're allergic.", "quinces"),
        ("You never take sugar, only lovage.", "lovage"),
        ("Don't forget: your neighbour is Ottoline.", "Ottoline"),
        ("I can't wait for you to meet Ottoline!", "Ottoline"),
        ("Here is what I know:\n- Dog: **Pumpernickel**\n- Tea: lovage", "Pumpernickel"),
        ('{"language": "Elixir"}', "Elixir"),
        ("You see Dr. Amsel on the 22nd of August.", "22 August"),
        ("Yes, I remember: Bluetail Heron.", "Bluetail Heron"),
        ("I found no newer note. The old one says Quillbase.", "Quillbase"),
        ("I don't recall when you told me, but the codename is Bluetail Heron.", "Bluetail Heron"),
        ("You asked me to remember that it's Elixir.", "Elixir"),
        ("You should not save files to Skyvault.", "Skyvault"),
        ("The person to ask about the Fenwick invoices is Ilse Morrow.", "Morrow"),
        ("I've removed B-417 and saved D-092.", "D-092"),
        ("While many think it's Sydney, the capital of Australia is Canberra.", "Canberra"),
        ("The capital is Canberra, which was chosen instead of Sydney.", "Canberra"),
        ("Don't worry, I remember that your bicycle is a Wanderfalke.", "Wanderfalke"),
        ("Good morning, Fennimore, how are you?", "Fennimore"),
    ],
)
def test_a_value_that_is_given_as_the_answer(reply: str, value: str) -> None:
    assert names(reply, [value])
    assert states(reply, [value])


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("I don't have any information about Canberra.", "Canberra"),
        ("I do not have any saved information regarding Canberra or Sydney.", "Sydney"),
        ("I couldn't find anything about Canberra.", "Canberra"),
        ("I could not find Canberra in my memory.", "Canberra"),
        ("There is no information about Canberra.", "Canberra"),
        ("No memories found for **Canberra**.", "Canberra"),
        ("I have no record of Elixir.", "Elixir"),
        ("There is nothing in my memory about Elixir.", "Elixir"),
        ("My notes do not mention Elixir.", "Elixir"),
        ("I don't remember that your language is Elixir.", "Elixir"),
        ("I'm not sure if it is Canberra.", "Canberra"),
        ("I'm not sure whether it's Canberra or Sydney.", "Sydney"),
        ("I don't think it's Canberra.", "Canberra"),
        ("I am not aware of a language called Elixir.", "Elixir"),
        ("You haven't told me anything about Elixir.", "Elixir"),
        ("You never mentioned Elixir.", "Elixir"),
        ("You asked me about Elixir.", "Elixir"),
        ("As for Elixir, I have no notes.", "Elixir"),
        ("Canberra is not in my memory.", "Canberra"),
        ("Elixir is unknown to me.", "Elixir"),
        ("I'm sorry, I cannot do that with Elixir.", "Elixir"),
        ("I can't tell you whether it is Elixir.", "Elixir"),
        ("I was unable to save Elixir as your language.", "Elixir"),
        ("I haven't saved Elixir yet.", "Elixir"),
        ("It's Canberra, not Sydney.", "Sydney"),
        ("Not Sydney, but Canberra.", "Sydney"),
        ("It isn't Sydney any more.", "Sydney"),
        ("It's not in Sydney.", "Sydney"),
        ("It is neither Sydney nor Melbourne.", "Sydney"),
        ("It is neither Sydney nor Melbourne.", "Melbourne"),
        ("It is **not** Sydney.", "Sydney"),
        ("You are no longer called Bramble.", "Bramble"),
        ("I won't call you Bramble any more.", "Bramble"),
        ("Sydney is not the capital.", "Sydney"),
        ("9:35 is no longer correct.", "9:35"),
        ("Do you mean Canberra?", "Canberra"),
        ("Canberra?", "Canberra"),
        ("Sorry, is it Canberra or Sydney?", "Canberra"),
        ("I don't know. Could it be Canberra?", "Canberra"),
        ("It used to be Erlang.", "Erlang"),
        ("It was Erlang, now Elixir.", "Erlang"),
        ("It was Erlang before.", "Erlang"),
        ("It was Erlang. Now it is Elixir.", "Erlang"),
        ("It was Monday until last week.", "Monday"),
        ("Formerly Bramble.", "Bramble"),
        ("Previously you were called Bramble.", "Bramble"),
        ("The stand-up, previously at 9:35, starts at 10:50.", "9:35"),
        ("Fennimore instead of Bramble.", "Bramble"),
        ("I changed it from Bramble to Fennimore.", "Bramble"),
        ("Your space has been moved from B-417 to D-092.", "B-417"),
        ("I replaced Bramble with Fennimore.", "Bramble"),
        ("Bramble has been replaced by Fennimore.", "Bramble"),
        ("Your old parking space was B-417.", "B-417"),
        ("Your former nickname, Bramble, is gone.", "Bramble"),
        ("9:35 → 10:50", "9:35"),
        ("9:35 (outdated)", "9:35"),
        ("If it is Canberra, tell me.", "Canberra"),
        ("B-417 was your old space.", "B-417"),
        ("The new time is 10:50; the old one was 9:35.", "9:35"),
        ("I have removed candied ginger from my notes.", "candied ginger"),
        ("You don't like candied ginger any more.", "candied ginger"),
        ("What do you want to know about Canberra?", "Canberra"),
        ("I'm afraid Canberra doesn't appear in my notes.", "Canberra"),
        ("Elixirs are drinks.", "Elixir"),
        ("", "Elixir"),
    ],
)
def test_a_value_that_is_not_given_as_the_answer(reply: str, value: str) -> None:
    assert not states(reply, [value])


def test_one_mention_that_gives_the_value_is_enough() -> None:
    assert states("It's not Canberra. Wait, it is Canberra.", ["Canberra"])
    assert states("Do you mean Elixir? Your language is Elixir.", ["Elixir"])
    assert states("It used to be 9:35. It is 10:50.", ["9:35", "10:50"])


def test_an_echo_is_the_users_own_words() -> None:
    said = "Please remember my preferred language is Elixir."
    assert echoes("My preferred language is Elixir!", said)
    assert not echoes("Your preferred language is Elixir.", said)
    assert not echoes("Elixir.", said)
    assert not echoes("", said)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I'm sorry, I can't do that.", True),
        ("I cannot help with that.", True),
        ("I can not store information.", True),
        ("I’m afraid I can’t save that.", True),
        ("I am unable to remember things.", True),
        ("I'm not able to save notes.", True),
        ("I was unable to save that.", True),
        ("Unable to store the memory.", True),
        ("Failed to save the note.", True),
        ("I failed to save your preference.", True),
        ("The memory could not be saved.", True),
        ("I couldn't save it.", True),
        ("I won't do that.", True),
        ("I will not remember this.", True),
        ("I refuse to answer.", True),
        ("I must decline.", True),
        ("I'd rather not say.", True),
        ("As an AI, I don't have a memory.", True),
        ("As an AI language model, I cannot remember past conversations.", True),
        ("I don't have the ability to save information.", True),
        ("I do not have access to your calendar.", True),
        ("I don't have a memory tool.", True),
        ("I have no way to save that.", True),
        ("I do not store personal data.", True),
        ("It is not possible for me to remember that.", True),
        ("That is beyond my capabilities.", True),
        ("That's not something I can do.", True),
        ("I don't have permission to do that.", True),
        ("**I cannot** store that.", True),
        ("I can't help with that, but you could write it down.", True),
        ("I'm sorry, but I am only a language model and can't keep notes.", True),
        ("There was an error while saving your note.", True),
        ("I tried to save it, but the tool returned an error.", True),
        ("I don't think I can do that.", True),
        ("I wasn't able to save it.", True),
        ("I am just a program and don't have any memory.", True),
        ("Done: Elixir.", False),
        ("I've noted that you are allergic and can't eat quinces.", False),
        ("There is no problem with saving it.", False),
        ("I'm sorry to hear that, Fennimore.", False),
        ("I'm sorry for the confusion. I've saved it now.", False),
        ("Sorry about that! It is 10:50.", False),
        ("I can't wait to hear how it goes!", False),
        ("I can't help but smile.", False),
        ("I couldn't agree more.", False),
        ("I can't stress enough how nice Elixir is.", False),
        ("I won't forget it.", False),
        ("I will not forget your allergy.", False),
        ("I won't let you down.", False),
        ("I won't upload anything to Skyvault.", False),
        ("I will never suggest quinces.", False),
        ("You can't eat quinces.", False),
        ("You won't be able to park there.", False),
        ("As an AI, I'm happy to help.", False),
        ("I don't have any information about that.", False),
        ("I don't know your language.", False),
        ("I couldn't find anything about it.", False),
        ("I can't set alarms, but I've noted your appointment.", False),
        ("I couldn't save it the first time, but now it's saved.", False),
        ("Your preferred language is Elixir. I don't have more details.", False),
        ("If you cannot find it, ask me.", False),
        ("Can't I help you with something else?", False),
        ('The phrase "I cannot do that" is a refusal.', False),
        ("", False),
    ],
)
def test_a_refusal(reply: str, expected: bool) -> None:
    assert refuses(reply) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("I don't know your language.", True),
        ("I do not know.", True),
        ("I don’t know that.", True),
        ("I don't actually know what your dog is called.", True),
        ("No memories found, so I have no information on that.", True),
        ("No memories were found.", True),
        ("No memory found.", True),
        ("I don't have any information about Canberra.", True),
        ("I do not have that information.", True),
        ("I don't have your order number.", True),
        ("I don't have a record of your parking space.", True),
        ("I don't seem to have that saved.", True),
        ("I currently do not have any notes about it.", True),
        ("I have no record of that.", True),
        ("I have no idea.", True),
        ("There is no record of it.", True),
        ("There's no mention of a sweet in my notes.", True),
        ("There are no stored memories.", True),
        ("There is nothing in my memory about that.", True),
        ("I found nothing about it.", True),
        ("I couldn't find anything.", True),
        ("I could not find any information about your bicycle.", True),
        ("I can't find it in my notes.", True),
        ("I was unable to find your order number.", True),
        ("I can't recall your parking space.", True),
        ("I don't remember.", True),
        ("I can't remember that.", True),
        ("I'm not sure what your favourite sweet is.", True),
        ("I am not aware of any sweet.", True),
        ("I'm unsure.", True),
        ("It is unknown.", True),
        ("Your parking space is unknown to me.", True),
        ("You haven't told me.", True),
        ("You have not mentioned a sweet.", True),
        ("You didn't tell me that.", True),
        ("You never told me your order number.", True),
        ("I haven't been told which sweet you like.", True),
        ("That is not in my memory.", True),
        ("Your order number isn't stored in my memory.", True),
        ("That information is not available.", True),
        ("The number of your order was not specified.", True),
        ("My notes don't mention a sweet.", True),
        ("My memory is empty.", True),
        ("As an AI, I don't have access to personal information about you.", True),
        ("I don't know, could you tell me?", True),
        ("I don't know, but you could look at your receipt.", True),
        ("I no longer have that information.", True),
        ("I'm afraid that I don't have it.", True),
        ("There isn't any information about it.", True),
        ("I don't see any notes about your bicycle.", True),
        ("I haven't saved anything about it.", True),
        ("I don't have an order number for you.", True),
        ("I can't say which one it was.", True),
        ("I'm not certain, but your order number might be 6053.", False),
        ("Nothing else is saved, but you take lovage.", False),
        ("I need more information to answer that.", False),
        ("You prefer Elixir.", False),
        ("It's Canberra. I don't have more details.", False),
        ("You said Canberra; I have no further information.", False),
        ("I don't know anything else, but it is Elixir.", False),
        ("I'm not sure, but I think it's Canberra.", False),
        ("I think your number is 6053, but I'm not certain.", False),
        ("I don't know for sure. My best guess is 6053.", False),
        ("You don't have to thank me.", False),
        ("I don't have anything to add.", False),
        ("I don't have a problem with that.", False),
        ("Don't you know it?", False),
        ("Many people don't know that quinces are hard.", False),
        ("If you don't know the number, ask at the counter.", False),
        ("Not sure what to cook? Try lovage.", False),
        ("No problem!", False),
        ("No information may be uploaded to Skyvault.", False),
        ("The soldier of the unknown army is buried here.", False),
        ("You haven't told your neighbour yet.", False),
        ("I don't remember a nicer evening!", False),
        ("I'm not sure I would wear that.", False),
        ("", False),
    ],
)
def test_not_knowing(reply: str, expected: bool) -> None:
    assert admits_unknown(reply) is expected


@pytest.mark.parametrize(
    "text",
    [
        "i have saved " * 4_000,
        "I'll " + "really " * 7_000 + "remember",
        "canberra " * 5_500,
        "not not " * 6_000 + "canberra",
        "was " * 12_000 + "canberra now",
        "from " * 10_000 + "canberra to",
        "1 234 " * 8_000,
        "`*_ " * 12_000,
        "a-" * 25_000,
        '"' * 50_000,
        "{" * 50_000,
        "\n" * 50_000,
        "if you, " * 6_000,
        "i don't have any, " * 2_800 + "?",
        "if you like i'll remember that " * 1_600,
        "nothing i saved earlier " * 2_000,
        "i will keep the long thing " * 1_900,
        "your " * 10_000 + "is saved",
        "é" * 50_000,
    ],
)
def test_a_very_long_reply_is_read_in_reasonable_time(text: str) -> None:
    begun = time.perf_counter()
    for rule in (claims_save, refuses, admits_unknown):
        rule(text)
    states(text, ["Canberra", "1234", "14 March", "7:30", "a b"])
    names(text, ["Canberra", "1234", "14 March", "7:30", "a b"])
    echoes(text, text)
    assert time.perf_counter() - begun < 20


def test_any_value_and_text_can_be_read() -> None:
    odd: list[Any] = ["(", "[a-z", "\\", "  ", "\u200b", "1,", "31 June", "99:99", "0", "-", "𝔈lixir", "🙂"]
    for text in odd:
        for rule in (claims_save, refuses, admits_unknown):
            assert rule(text) is False
        assert names(f"so: {text} .", [text]) is bool(text.strip(" \u200b"))
        states(text, odd)
