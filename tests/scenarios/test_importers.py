"""Benchmarks become stories and retrieval sets: samples of our own, in the shapes their authors publish."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.cli.scenarios_import import NAMES, import_
from memeval.errors import InfrastructureError, InputError
from memeval.retrieval.datasets import Dataset, load_dataset
from memeval.retrieval.sweep import load_sweep
from memeval.scenarios.importers import BENCHMARKS, Imported, Options, answers, import_benchmark, reading
from memeval.scenarios.importers.base import Tally, choose
from memeval.scenarios.importers.question import FLAWS, Question
from memeval.scenarios.importers.yamltext import document
from memeval.scenarios.loader import load_folder, read_scenarios
from memeval.scenarios.schema import Scenario, Turn

# samples in the published shapes


def lines(path: Path, items: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")


def said(*turns: str) -> list[list[dict[str, str]]]:
    return [[{"role": "user", "content": turn}] for turn in turns]


def bfcl(folder: Path) -> Path:
    home = folder / "bfcl"
    sailor = [
        {"id": "memory_prereq_0-sailor-0", "topic": "The Boat & its Paint", "scenario": "sailor",
         "question": said("Good morning.", "My boat, the Wobbegong, is 9 metres long — and it’s green."),
         "involved_classes": ["MemoryAPI"]},
        {"id": "memory_prereq_1-sailor-1", "topic": "Weather", "scenario": "sailor",
         "question": said("A storm is coming.", "I am leaving the harbour of Tarnvik at noon.", "Bye.")},
    ]  # fmt: skip
    cook = [{"id": "memory_prereq_2-cook-0", "topic": "Bread", "scenario": "cook",
             "question": said("I bake rye bread.", "My name is Ida.")}]  # fmt: skip
    lines(home / "memory_prereq_conversation" / "memory_sailor.json", sailor)
    lines(home / "memory_prereq_conversation" / "memory_cook.json", cook)
    asked = {"What is my boat called?": "sailor", "How long is my boat?": "sailor",
             "Which colour?": "sailor", "Where do I start from?": "sailor",
             "What is my name?": "cook", "Who am I?": "pilot"}  # fmt: skip
    gold: list[tuple[list[Any], str]] = [
        (["Wobbegong"], "My boat, the Wobbegong..."), ([9, "nine"], "...is 9 metres long - and it's green."),
        (["green", "emerald"], "and it’s green"), (["Tarnvik"], "I am leaving ... harbour of Tarnvik"),
        (["Ida"], "words that nobody said"), (["Ann"], "My name is Ann."),
    ]  # fmt: skip
    ids = [f"memory_{i}-{scenario}-{i}" for i, scenario in enumerate(asked.values())]
    ids[3] = "Memory 3/Sailor"
    lines(home / "BFCL_v4_memory.json", [
        {"id": key, "question": [said(text)[0]], "involved_classes": ["MemoryAPI"], "scenario": scenario}
        for key, (text, scenario) in zip(ids, asked.items(), strict=True)
    ])  # fmt: skip
    lines(home / "possible_answer" / "BFCL_v4_memory.json", [
        {"id": key, "ground_truth": truth, "source": source}
        for key, (truth, source) in zip(ids, gold, strict=True)
    ])  # fmt: skip
    (home / "LICENSE").write_text("Apache License", encoding="utf-8")
    return home


def letta(folder: Path) -> Path:
    facts = [["Ann Marrow plays the viola.", "Ann Marrow lives in Tarnvik.", "Ann's boss is Bo Lund."],
             ["Olga keeps bees.", "Olga is 40."]]  # fmt: skip
    rows: list[tuple[int, str, Any, str, list[int]]] = [
        (0, "What does Ann Marrow play?", "the tuba", '"Ann Marrow plays the tuba."', [0]),
        (0, "Who is Ann's boss, Bo Lund or Eva Holt?", "Eva Holt", "Ann's boss is Eva Holt.", [2]),
        (1, "How old is Olga?", 41, "Olga is 41.", [1, 0]),
        (1, "Does Olga keep bees?", "No, she sold them", "Olga sold her bees.", [0]),
        (1, "What is Olga's secret?", "It was never told to anyone at all", "", [7]),
    ]
    path = folder / "core_memory_update.jsonl"
    lines(path, [
        {"input": text, "ground_truth": gold, "agent_args": {"extra": {
            "facts": facts[group], "contradicting_fact": told, "contradicting_answer": gold,
            "supporting_fact_indices": indices}}}
        for group, text, gold, told, indices in rows
    ])  # fmt: skip
    return path


def locomo(folder: Path) -> Path:
    def line(key: str, who: str, text: str, **more: Any) -> dict[str, Any]:
        return {"speaker": who, "dia_id": key, "text": text, **more}

    conversation = {
        "speaker_a": "Ann", "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            line("D1:1", "Ann", "I went sailing yesterday."),
            line("D1:2", "Bo", "With whom?", blip_caption="a photo of a harbour", img_url=["x"], query="y"),
            line("D1:3", "Ann", "With Eva, and I like pottery and camping."),
        ],
        "session_2_date_time": "8:00 am on 2 June, 2023",
        "session_2": [line("D2:1", "Bo", "I bought two goats."), line("D2:2", "Ann", "Eva has a goat.")],
        "session_3_date_time": "some day",
        "session_3": [line("D3:1", "Bo", "Hello."), line("D3:2", "Bo", "  ")],
        "session_4_date_time": "9:00 am on 3 June, 2023",
    }  # fmt: skip
    rows: list[tuple[int, str, Any, list[str] | None]] = [
        (2, "When did Ann go sailing?", "7 May, 2023", ["D1:1"]),
        (4, "Who went sailing with Ann?", "Eva", ["D1:3"]),
        (1, "What does Ann like?", "Pottery, camping", ["D:1:03"]),
        (1, "How many goats are there?", 2, ["D2:1; D2:2", "D9:1"]),
        (3, "Would Ann like a boat?", "Likely yes", ["D1:1"]),
        (2, "When was Bo ill?", "The week before 8 May 2023", ["D1:2"]),
        (3, "Why goats?", "Because they are cheap to feed and he is poor", []),
    ]
    asked = [{"question": q, "answer": a, "evidence": e, "category": c} for c, q, a, e in rows]
    asked.append({"question": "What did Bo bake?", "adversarial_answer": "a cake", "evidence": ["D2:1"],
                  "category": 5})  # fmt: skip
    path = folder / "locomo10.json"
    sample = {"sample_id": "conv-1", "conversation": conversation, "qa": asked, "event_summary": {}, "x": 1}
    path.write_text(json.dumps([sample, {**sample, "sample_id": "conv-2"}]), encoding="utf-8")
    return path


def longmemeval(folder: Path) -> Path:
    def entry(key: str, kind: str, question: str, answer: Any, *told: tuple[str, bool]) -> dict[str, Any]:
        evidence = [{"role": "user", "content": text, "has_answer": has} for text, has in told]
        evidence.insert(1, {"role": "assistant", "content": f"Noted, {key}.", "has_answer": False})
        filler = [[{"role": "user", "content": f"Filler {i} of {key}."}] for i in range(14)]
        return {
            "question_id": key, "question_type": kind, "question": question, "answer": answer,
            "question_date": "2023/05/30 (Tue) 23:40", "answer_session_ids": [f"answer_{key}"],
            "haystack_session_ids": [*(f"filler_{key}_{i}" for i in range(14)), f"answer_{key}"],
            "haystack_dates": [*(f"2023/05/{10 + i} (Sat) 02:21" for i in range(14)), "2023/05/01 10:00"],
            "haystack_sessions": [*filler, evidence],
        }  # fmt: skip

    items = [
        entry("q1", "single-session-user", "Which degree?", "Forestry", ("I studied forestry.", True)),
        entry("q1_abs", "single-session-user", "Which school?", "You did not say.", ("I studied.", False)),
        entry("q2", "multi-session", "How many goats?", 3, ("I have a goat.", True), ("And two.", True)),
        entry("q3", "temporal-reasoning", "How many days?",
              "7 days. 8 days (including the last day) is also acceptable.", ("It began on Monday.", True)),
        entry("q4", "single-session-preference", "What to cook?", "The user would ...", ("Beans.", True)),
        entry("q5", "single-session-user", "What colour?", "teal", ("My boat is teal. " * 200, True)),
        entry("q6", "single-session-user", "What size?", "small", ("It is small.", False)),
    ]  # fmt: skip
    path = folder / "longmemeval_s.json"
    path.write_text(json.dumps(items, indent=1), encoding="utf-8")
    return path


SAMPLES = {"bfcl": bfcl, "letta": letta, "locomo": locomo, "longmemeval": longmemeval}


def imported(name: str, folder: Path, **options: Any) -> Imported:
    return import_benchmark(name, SAMPLES[name](folder), folder / "out", Options(**options))


def stories(found: Imported) -> dict[str, Scenario]:
    return {story.scenario: story for story in load_folder(found.folder)}


def datasets(found: Imported) -> dict[str, Dataset]:
    loaded = [load_dataset(sweep.parent / load_sweep(sweep).dataset) for sweep in found.sweeps]
    return {dataset.name: dataset for dataset in loaded}


def counts(found: Imported, group: str) -> dict[str, int]:
    return {what.split(":")[0] if group == "flaw" else what: n for g, what, n in found.counts if g == group}


def asking(story: Scenario) -> Turn:
    return story.sessions[-1].turns[-1]


# what all have in common


@pytest.mark.parametrize("name", NAMES)
def test_stories_and_retrieval_sets_are_read_by_those_they_are_for(name: str, tmp_path: Path) -> None:
    found = imported(name, tmp_path)
    told, sets = stories(found), datasets(found)
    assert told
    assert sets
    made = counts(found, "made")
    assert made["stories"] == len(told)
    assert made["families"] == len({story.family for story in told.values()})
    assert made["retrieval sets"] == len(sets)
    assert made["questions for retrieval"] == sum(len(one.queries) for one in sets.values())
    assert made["documents to search"] == sum(len(one.documents) for one in sets.values())
    for story in told.values():
        assert story.scenario.startswith(f"{name}-")
        assert story.family.startswith(f"{name}-")
        assert story.tags[0] == name
        assert set(story.tags[2:]) <= FLAWS.keys()
        assert story.source is not None
        trust, kind = story.source.relative_to(found.folder / "stories").parts[:2]
        assert kind == story.tags[1]
        assert (trust == "doubtful") == bool({"answer-reworded", "answer-in-question"} & set(story.tags))


@pytest.mark.parametrize("name", NAMES)
def test_every_question_is_a_story_or_counted_with_its_reason(name: str, tmp_path: Path) -> None:
    found = imported(name, tmp_path)
    left = counts(found, "left out")
    read = counts(found, "read")["questions"]
    assert read == counts(found, "made")["stories"] + sum(n for what, n in left.items() if "no story" in what)
    queries = counts(found, "made")["questions for retrieval"]
    assert read == queries + sum(n for what, n in left.items() if "not in retrieval" in what)


@pytest.mark.parametrize("name", NAMES)
def test_origin_and_licence_stay_with_the_files(name: str, tmp_path: Path) -> None:
    found = imported(name, tmp_path)
    benchmark = BENCHMARKS[name]
    for path in found.folder.rglob("*.yaml"):
        head = [line for line in path.read_text(encoding="utf-8").splitlines()[:3] if line.startswith("#")]
        assert any(benchmark.origin in line and benchmark.licence in line for line in head)
    for origin in [found.folder / "README.md", *found.folder.glob("retrieval/*/ORIGIN")]:
        assert benchmark.origin in origin.read_text(encoding="utf-8")
        assert benchmark.licence in origin.read_text(encoding="utf-8")
    assert (found.folder / "LICENSE").exists() == (name == "bfcl")
    for file in found.folder.glob("stories/*/*/*.yaml"):
        assert (file.parent / "../../../schema.json").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_data_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    one, two = (import_benchmark(name, SAMPLES[name](tmp_path), tmp_path / out).folder for out in "ab")
    files = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (one, two)]
    assert files[0] == files[1]


# one by one


def test_bfcl_tells_the_session_that_holds_the_answer_live(tmp_path: Path) -> None:
    found = imported("bfcl", tmp_path)
    told = stories(found)
    story = told["bfcl-memory_0-sailor-0"]
    assert story.family == "bfcl-sailor-the-boat-its-paint"
    assert [len(session.turns) for session in story.sessions] == [2, 1]
    assert not story.sessions[0].given
    mention = story.sessions[0].turns[1]
    assert mention.strength == "mention"
    assert mention.expect is not None
    assert (mention.expect.intent, mention.expect.facts) == ("note", ["answer"])
    assert asking(story).user == "What is my boat called?"
    assert asking(story).expect.answer.states == ["answer"]  # type: ignore[union-attr]
    assert told["bfcl-memory_1-sailor-1"].facts["answer"].values == ["9", "nine"]
    assert {story.family for story in told.values()} == {
        "bfcl-sailor-the-boat-its-paint",
        "bfcl-sailor-weather",
    }
    assert counts(found, "left out") == {
        "no story: no message is known to hold the answer": 1,
        "no story: the sessions of its scenario are not in the folder": 1,
        "not in retrieval: no message is known to hold the answer": 1,
        "not in retrieval: the sessions of its scenario are not in the folder": 1,
    }
    assert counts(found, "flaw") == {"short-answer": 1, "numeric-answer": 1, "several-answers": 1}
    assert counts(found, "note") == {"a malformed id, repaired": 1}
    assert "bfcl-memory-3-sailor" in told
    qrels = datasets(found)["bfcl-sailor"].qrels
    assert qrels["bfcl-memory_1-sailor-1"] == {"memory_prereq_0-sailor-0#t1": 1}
    assert qrels["bfcl-memory-3-sailor"] == {"memory_prereq_1-sailor-1#t1": 1}


def test_bfcl_can_tell_all_sessions_or_have_them_stand_in_memory(tmp_path: Path) -> None:
    whole = stories(imported("bfcl", tmp_path, sessions=0))["bfcl-memory_0-sailor-0"]
    assert [len(session.turns) for session in whole.sessions] == [2, 3, 1]
    found = imported("bfcl", tmp_path, given=True)
    story = stories(found)["bfcl-memory_0-sailor-0"]
    assert [len(session.turns) for session in story.sessions] == [1]
    assert len(story.sessions[0].given) == 5
    assert story.sessions[0].given[1].text.startswith("My boat, the Wobbegong")
    assert counts(found, "made")["model turns, one run of each story"] == 4


def test_letta_corrects_a_fact_and_asks_in_the_next_session(tmp_path: Path) -> None:
    found = imported("letta", tmp_path)
    told = stories(found)
    story = told["letta-g000-q0"]
    assert story.sessions[0].given[0].text == "Ann Marrow plays the viola."
    tell = story.sessions[0].turns[0]
    assert tell.user == "Please correct what you know: Ann Marrow plays the tuba."
    assert tell.expect is not None
    assert (tell.expect.intent, tell.expect.facts) == ("update", ["answer"])
    assert story.facts["answer"].values == ["tuba"]
    assert "quoted-fact" in story.tags
    assert "answer-in-question" in told["letta-g000-q1"].tags
    assert told["letta-g001-q0"].facts["answer"].values == ["41"]
    assert told["letta-g001-q0"].tags[1] == "several-facts"
    assert told["letta-g001-q0"].family == "letta-g001" != story.family
    left = counts(found, "left out")
    assert left[f"no story: {answers.YES_OR_NO}"] == left[f"no story: {answers.TOO_LONG}"] == 1
    assert counts(found, "flaw")["numeric-answer"] == 1
    assert datasets(found)["letta-facts"].qrels["letta-g001-q0"] == {"g001-f1": 1, "g001-f0": 1}


def test_locomo_gives_what_both_speakers_said(tmp_path: Path) -> None:
    found = imported("locomo", tmp_path)
    story = stories(found)["locomo-conv-1-q2"]
    given = [record.text for record in story.sessions[0].given]
    assert given[:3] == [
        "Ann, 8 May 2023: I went sailing yesterday.",
        "Bo, 8 May 2023: With whom? [shares a picture: a photo of a harbour]",
        "Ann, 8 May 2023: With Eva, and I like pottery and camping.",
    ]
    assert given[-1] == "Bo, some day: Hello."
    assert story.sessions[0].at == datetime(2023, 6, 3, 8, tzinfo=UTC)
    assert asking(story).user == "Who went sailing with Ann?"
    assert "answer-elsewhere" in story.tags
    assert story.family == "locomo-conv-1"
    notes = counts(found, "note")
    assert notes["an empty message, left out"] == 2
    assert notes["unknown field 'x' of conversation, ignored"] == 2
    assert notes["a session whose date cannot be read; its text stands as it is written"] == 2


def test_locomo_answers_become_values_and_what_cannot_be_judged_is_left_out(tmp_path: Path) -> None:
    found = imported("locomo", tmp_path)
    told = stories(found)
    date, liked, goats = (told[f"locomo-conv-1-q{i}"] for i in (1, 3, 4))
    assert date.facts["answer"].values[0] == "7 May, 2023"
    assert "answer-inferred" in date.tags
    assert asking(date).expect.facts == ["evidence"]  # type: ignore[union-attr]
    assert date.facts["evidence"].values == ["Ann, 8 May 2023: I went sailing yesterday."]
    assert [liked.facts[name].values for name in ("answer", "answer-2")] == [["Pottery"], ["camping"]]
    assert asking(liked).expect.answer.states == ["answer", "answer-2"]  # type: ignore[union-attr]
    assert {"evidence-repaired", "list-answer"} <= set(liked.tags)
    assert goats.facts["answer"].values == ["2"]
    assert {"numeric-answer", "evidence-repaired", "evidence-unknown"} <= set(goats.tags)
    assert set(told) == {f"locomo-conv-{c}-q{q}" for c in (1, 2) for q in (1, 2, 3, 4, 8)}
    left = counts(found, "left out")
    assert left[f"no story: {answers.YES_OR_NO}"] == left[f"no story: {answers.RELATIVE}"] == 2
    assert left["not in retrieval: no message is known to hold the answer"] == 2
    sets = datasets(found)
    assert set(sets) == {"locomo-conv-1", "locomo-conv-2"}
    assert sets["locomo-conv-1"].qrels["locomo-conv-1-q4"] == {"D2:1": 1, "D2:2": 1}


def test_an_adversarial_question_asks_for_the_admission(tmp_path: Path) -> None:
    found = imported("locomo", tmp_path)
    story = stories(found)["locomo-conv-1-q8"]
    answer = asking(story).expect.answer  # type: ignore[union-attr]
    assert answer.admits_unknown
    assert answer.avoids == ["trap"]
    assert story.facts["trap"].values[0] == "cake"
    labels = {query.id: query.label for query in datasets(found)["locomo-conv-1"].queries}
    assert labels["locomo-conv-1-q8"] == "unanswerable"
    assert counts(found, "flaw")["unanswerable"] == 2


def test_longmemeval_gives_sessions_in_order_and_asks_with_the_date(tmp_path: Path) -> None:
    found = imported("longmemeval", tmp_path)
    told = stories(found)
    story = told["longmemeval-q1"]
    given = [record.text for record in story.sessions[0].given]
    assert given[:2] == ["User, 1 May 2023: I studied forestry.", "Assistant, 1 May 2023: Noted, q1."]
    assert len(given) == 2 + 9
    assert asking(story).user == "Today is 30 May 2023. Which degree?"
    assert story.sessions[0].at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert told["longmemeval-q1_abs"].family == story.family == "longmemeval-q1"
    assert told["longmemeval-q1_abs"].tags[1] == "abstention"
    assert asking(told["longmemeval-q1_abs"]).expect.answer.admits_unknown  # type: ignore[union-attr]
    assert told["longmemeval-q3"].facts["answer"].values[:2] == ["7 days", "seven days"]
    assert "8 days" in told["longmemeval-q3"].facts["answer"].values
    assert asking(told["longmemeval-q2"]).expect.facts == ["evidence", "evidence-2"]  # type: ignore[union-attr]
    assert "longmemeval-q4" not in told
    whole = stories(imported("longmemeval", tmp_path, sessions=0))["longmemeval-q1"]
    assert len(whole.sessions[0].given) == 2 + 14
    alone = stories(imported("longmemeval", tmp_path, sessions=1))["longmemeval-q1"]
    assert [record.text for record in alone.sessions[0].given] == given[:2]


def test_longmemeval_searches_evidence_sessions_in_short_passages(tmp_path: Path) -> None:
    found = imported("longmemeval", tmp_path)
    dataset = datasets(found)["longmemeval-evidence"]
    assert not any("Filler" in document.text for document in dataset.documents)
    assert max(len(document.text) for document in dataset.documents) <= 1200
    assert list(dataset.qrels["longmemeval-q5"]) == [f"answer_q5_0{part}" for part in ("", ".2", ".3")]
    assert {query.id for query in dataset.queries} == {f"longmemeval-q{i}" for i in ("1", "1_abs", *"2345")}
    assert counts(found, "left out")["not in retrieval: no message is known to hold the answer"] == 1
    assert "no-evidence" in stories(found)["longmemeval-q6"].tags


def test_a_memory_too_large_for_a_story_file_is_cut_and_counted(tmp_path: Path) -> None:
    path = longmemeval(tmp_path)
    items = json.loads(path.read_text(encoding="utf-8"))[:2]
    for session in items[0]["haystack_sessions"][:14]:
        session[0]["content"] = "words and more words " * 10_000
    items[1]["haystack_sessions"][-1][0]["content"] = "one long word after the other " * 60_000
    path.write_text(json.dumps(items), encoding="utf-8")
    found = import_benchmark("longmemeval", path, tmp_path / "out")
    (story,) = stories(found).values()
    given = story.sessions[0].given
    assert sum(len(record.text) for record in given) > 500_000
    assert max(len(record.text) for record in given) <= 20_000
    assert counts(found, "note") == {
        "a story with fewer sessions in memory, for a story file can hold no more": 1
    }
    assert counts(found, "left out")["no story: the story is larger than a story file may be"] == 1


def test_what_a_model_writes_need_not_hold_the_evidence_word_for_word(tmp_path: Path) -> None:
    home = bfcl(tmp_path)
    gold = home / "possible_answer" / "BFCL_v4_memory.json"
    gold.write_text(gold.read_text(encoding="utf-8").replace('"Wobbegong"', '"a shark"'), encoding="utf-8")
    live, whole = (
        stories(import_benchmark("bfcl", home, tmp_path / out, Options(given=out == "given")))
        for out in ("live", "given")
    )
    story = live["bfcl-memory_0-sailor-0"]
    assert "answer-reworded" in story.tags
    assert asking(story).expect.facts == []  # type: ignore[union-attr]
    assert set(story.facts) == {"answer"}
    assert asking(whole[story.scenario]).expect.facts == ["evidence"]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", [" ", "x" * 30_000, "{}\r\n---\n- a: [b \0"], ids=["blank", "long", "signs"])
def test_odd_texts_are_imported_or_refused_in_a_sentence(name: str, text: str, tmp_path: Path) -> None:
    """In the first item of each file, every text of one key is replaced, key after key."""
    file = SAMPLES[name](tmp_path)
    for path in [file] if file.is_file() else sorted(file.rglob("*.json")):
        whole = path.read_text(encoding="utf-8")
        first = json.loads(whole if whole.startswith("[") else whole.splitlines()[0])
        for key in sorted({key for _, key in _texts(first)}):
            items = json.loads(whole) if whole.startswith("[") else [*map(json.loads, whole.splitlines())]
            for holder, place in _texts(items[0]):
                if place == key:
                    holder[place] = text
            path.write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
            try:
                found = import_benchmark(name, file, tmp_path / "out")
            except InputError as error:
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert counts(found, "made")["stories"] == len(stories(found))
                datasets(found)
        path.write_text(whole, encoding="utf-8")


def _texts(data: Any) -> list[tuple[dict[str, Any], str]]:
    """Where texts stand in an item: the object and the key."""
    if isinstance(data, list):
        return [place for value in data for place in _texts(value)]
    if not isinstance(data, dict):
        return []
    own = [(data, key) for key, value in data.items() if isinstance(value, str)]
    return own + [place for value in data.values() for place in _texts(value)]


# choosing


def test_a_limit_is_spread_over_families_and_kinds() -> None:
    asked = [
        Question(id=f"{f}{k}{i}", family=f, kind=k, text="?", at=0)
        for f in "abc"
        for k in "xy"
        for i in "12345"
    ]
    for at, question in enumerate(asked):
        question.at = at
        question.no_story = "why" if question.family == "c" else ""
    asked[0].no_query = asked[0].no_story = "why"
    chosen = choose(asked, 4)
    assert Counter(q.family for q in chosen) == {"a": 2, "b": 2}
    assert Counter(q.kind for q in chosen) == {"x": 2, "y": 2}
    assert asked[0] not in choose(asked, None)
    assert Counter(q.family for q in choose(asked, 21)) == {"a": 9, "b": 10, "c": 2}
    assert [q.at for q in choose(asked, 7)] == sorted(q.at for q in choose(asked, 7))


def test_what_a_limit_leaves_out_is_counted(tmp_path: Path) -> None:
    found = imported("locomo", tmp_path, limit=2)
    assert {story.family for story in stories(found).values()} == {"locomo-conv-1", "locomo-conv-2"}
    assert counts(found, "left out")["by --limit"] == 12
    assert all(len(dataset.documents) == 6 for dataset in datasets(found).values())


# answers


@pytest.mark.parametrize(
    ("gold", "parts"),
    [
        ("Pottery, camping and the sea.", ["Pottery", "camping", "sea"]),
        ("PC,Playstation.", ["PC", "Playstation"]),
        ("September 2, 2022", ["September 2, 2022"]),
        ("1,200 crowns", ["1,200 crowns"]),
        ('"Pride and Prejudice"', ["Pride and Prejudice"]),
        ("in the garden", ["garden"]),
        (" , ", [","]),
    ],
)
def test_a_list_is_taken_apart(gold: str, parts: list[str]) -> None:
    assert answers.parts(gold) == parts


@pytest.mark.parametrize(
    ("gold", "question", "forms"),
    [
        ("the tuba", "", ["tuba", "the tuba"]),
        ("three times", "How often?", ["three times", "3 times", "thrice"]),
        ("40 points", "How many points?", ["40 points", "40"]),
        ("two weeks", "How long?", ["two weeks", "2 weeks"]),
        ("five hundred thirteen", "How many?", ["five hundred thirteen"]),
        ("7 May 2023", "", ["7 May 2023"]),
        ("April, 2023", "", ["April, 2023", "April 2023"]),
        ("$49.99", "", ["$49.99", "49.99"]),
        ("Elixir.", "", ["Elixir", "Elixir."]),
    ],
)
def test_forms_of_an_answer(gold: str, question: str, forms: list[str]) -> None:
    assert answers.forms(gold, question) == forms


def test_answers_nobody_can_be_held_to() -> None:
    assert answers.unfit("Likely no") == answers.unfit("Yes.") == answers.YES_OR_NO
    assert answers.unfit("The week before 9 June 2023") == answers.RELATIVE
    assert answers.unfit("by giving herself wholly to the dance") == answers.TOO_LONG
    assert not answers.unfit("Norway")
    assert not answers.unfit("tea, bread with butter, two eggs")


# bad input


def test_every_importer_has_its_name_on_the_command_line() -> None:
    assert tuple(BENCHMARKS) == NAMES
    with pytest.raises(InputError, match="did you mean 'locomo'"):
        import_benchmark("lokomo", "x")


@pytest.mark.parametrize("name", ["letta", "locomo", "longmemeval"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing in it; give "),
        (b" \n", "nothing in it; give "),
        (b"[]", "nothing in it; give "),
        (b"PK\x03\x04", "not JSON: it begins with 'PK"),
        (b'"text"', "not JSON: it begins with"),
        (b"[1]", r":1: 1 stands where an object such as \{...\} is wanted"),
        (b'[{"a": 1}', "the list has no end: the file is cut off"),
        (b'[{"a": 1},\n{"a": "b', ":2: not JSON: the file is cut off; get it anew"),
        (b'[{"a": 1},\n{"a" 2}, {"a": 1}]' + b" " * 99, ":2: not JSON: Expecting ':'"),
        (b'{"a": 1}\n{"a": tr', ":2: not JSON: the file is cut off"),
        (b'[{"a": 1}] x', ":1: text after the end of the list"),
        (b'[{"a": 1} {"a": 1}]', ":1: not JSON: '{' where a comma or the end of the list is wanted"),
        (b'[{"a": "\xff"}]', ":1: not UTF-8 text; save the file as UTF-8"),
        ("[\n{}]".encode("utf-16"), ":1: not UTF-8 text"),
        (b'[{"a": ' + b"[" * 100_000, "nested too deep"),
        (b'[{"a": ' + b"1" * 5000 + b"}]", "a number of more digits than can be read"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_of_theirs(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(content)
    # an item that is whole is looked at before the next one is read
    expected = message if b'"a": 1}' not in content else f"{message}|the field .* is missing"
    with pytest.raises(InputError, match=expected) as caught:
        import_benchmark(name, path, tmp_path / "out")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["letta", "locomo", "longmemeval"])
def test_the_file_of_another_benchmark_is_recognised(name: str, tmp_path: Path) -> None:
    for other in ("letta", "locomo", "longmemeval"):
        if other != name:
            with pytest.raises(
                InputError, match=f"this looks like {other}: memeval scenarios import {other}"
            ):
                import_benchmark(name, SAMPLES[other](tmp_path), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("locomo", lambda d: d[0].pop("qa"), "'qa' is missing; an item of locomo has conversation, qa, this"),
        ("locomo", lambda d: d[0]["qa"][0].update(category="two"), "qa.0.category: Input should be a"),
        ("locomo", lambda d: d[0].update(conversation={}), "no session_1 in the conversation"),
        ("locomo", lambda d: d[0]["conversation"].update(session_1="x"), "session_1 must be a list"),
        ("locomo", lambda d: d[0]["conversation"]["session_1"][0].pop("text"), "the field 'text' is missing"),
        ("locomo", lambda d: d[1].update(sample_id="conv-1"), "'conv-1' stands twice"),
        ("longmemeval", lambda d: d[1]["haystack_dates"].pop(), "15 session ids, 14 dates and 15 sessions"),
        ("longmemeval", lambda d: d[0].update(haystack_sessions="x"), "haystack_sessions: Input should"),
        ("longmemeval", lambda d: d[0].update(answer=None), "answer.str: Input should be a valid string"),
    ],
)  # fmt: skip
def test_another_shape_is_told_with_its_place(name: str, change: Any, message: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        import_benchmark(name, path, tmp_path / "out")
    assert str(caught.value).startswith(f"{path}:1: ")


def test_a_folder_for_a_file_and_a_file_for_a_folder(tmp_path: Path) -> None:
    path = locomo(tmp_path)
    with pytest.raises(InputError, match=f"is a folder; give the file locomo10.json, such as {path}"):
        import_benchmark("locomo", tmp_path, tmp_path / "out")
    with pytest.raises(InputError, match="no such file; give the file locomo10"):
        import_benchmark("locomo", tmp_path / "none.json", tmp_path / "out")
    with pytest.raises(InputError, match="is no folder; give the folder that holds BFCL_v4"):
        import_benchmark("bfcl", path, tmp_path / "out")
    with pytest.raises(InputError, match="there is no BFCL_v4_memory"):
        import_benchmark("bfcl", tmp_path, tmp_path / "out")
    home = bfcl(tmp_path)
    for file in (home / "memory_prereq_conversation").iterdir():
        file.unlink()
    with pytest.raises(InputError, match="no session file"):
        import_benchmark("bfcl", home, tmp_path / "out")


def test_data_without_a_usable_question_are_refused(tmp_path: Path) -> None:
    path = letta(tmp_path)
    item = json.loads(path.read_text(encoding="utf-8").splitlines()[4])
    lines(path, [item])
    with pytest.raises(InputError, match="none of 1 questions can be imported: the answer is longer"):
        import_benchmark("letta", path, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [path]


def test_half_a_surrogate_pair_and_control_signs_are_kept_readable(tmp_path: Path) -> None:
    path = locomo(tmp_path)
    text = path.read_text(encoding="utf-8").replace("With whom?", r"With \ud83d whom\u0000\u2028\u0085?")
    path.write_text(text, encoding="utf-8")
    found = import_benchmark("locomo", path, tmp_path / "out")
    given = stories(found)["locomo-conv-1-q1"].sessions[0].given
    assert "With � whom\0\u2028\u0085?" in given[1].text
    assert "With � whom" in datasets(found)["locomo-conv-1"].documents[1].text


def test_a_large_file_is_read_item_by_item(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    item = json.dumps({"id": "x", "text": "some words that go on " * 5_000})
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        file.writelines(f"{item},\n" for _ in range(480))
        file.write(f"{item}]")
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in reading.read_items(path, Tally(BENCHMARKS["locomo"]))) == 481
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15_000_000


def test_an_item_without_end_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST", 3_000_000)
    path = tmp_path / "large.json"
    path.write_text('[{"a": "' + "x" * 9_000_000, encoding="utf-8")
    with pytest.raises(InputError, match="an item of more than 3,000,000 characters"):
        import_benchmark("locomo", path, tmp_path / "out")


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(
    items=st.lists(st.dictionaries(st.text(), _json, min_size=1, max_size=3), min_size=1, max_size=5),
    chunk=st.integers(1, 40),
    listed=st.booleans(),
    ascii_only=st.booleans(),
)
def test_items_are_the_same_wherever_the_file_is_cut_for_reading(
    tmp_path_factory: pytest.TempPathFactory, items: list[Any], chunk: int, listed: bool, ascii_only: bool
) -> None:
    told = [json.dumps(item, ensure_ascii=ascii_only).encode("utf-8", "replace") for item in items]
    path = tmp_path_factory.mktemp("items") / "items.json"
    path.write_bytes(b"[" + b" ,\n".join(told) + b"]" if listed else b"\n".join(told))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_CHUNK", chunk)
        found = [item for _, item in reading.read_items(path, Tally(BENCHMARKS["locomo"]))]
    assert found == [json.loads(one) for one in told]


# the folder


def test_an_earlier_import_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    path, out = locomo(tmp_path), tmp_path / "out"
    import_benchmark("locomo", path, out)
    found = import_benchmark("locomo", path, out, Options(limit=1))
    assert len(stories(found)) == 1
    with pytest.raises(InputError, match="holds an import of locomo, not of letta"):
        import_benchmark("letta", letta(tmp_path), out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes.txt was not imported, and importing again would remove it"):
        import_benchmark("locomo", path, out)
    (out / "notes.txt").unlink()
    story = next(iter(out.glob("stories/*/*/*.yaml")))
    story.write_text(story.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    with pytest.raises(InputError, match="was changed since it was imported"):
        import_benchmark("locomo", path, out)
    assert story.read_text(encoding="utf-8").endswith("# mine\n")


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    path, out = locomo(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty and holds no earlier import"):
        import_benchmark("locomo", path, out)
    (out / "import.json").write_text("[1]")
    with pytest.raises(InputError, match="not the record of an import"):
        import_benchmark("locomo", path, out)
    with pytest.raises(InputError, match=r"precious.txt is a file; --out needs a folder"):
        import_benchmark("locomo", path, out / "precious.txt" / "x")
    assert {p.name for p in out.iterdir()} == {"precious.txt", "import.json"}


def test_an_earlier_import_stays_where_a_later_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = locomo(tmp_path), tmp_path / "out"
    import_benchmark("locomo", path, out)
    before = sorted(tmp_path.rglob("*"))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memeval.scenarios.importers.folder.write_dataset", full)
    with pytest.raises(InfrastructureError, match="cannot be written: No space left on device"):
        import_benchmark("locomo", path, out)
    assert sorted(tmp_path.rglob("*")) == before


# YAML

_text = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
_like_yaml = st.sampled_from(
    [
        "yes",
        "null",
        "1e3",
        "- a",
        "a: b",
        "a #b",
        "'",
        '"',
        "{a}",
        "...",
        "a\nb",
        " a",
        "1:2",
        "~",
        "a,b",
        "a  b",
    ]
)


@settings(max_examples=80, deadline=None)
@given(texts=st.lists(_text | _like_yaml, min_size=3, max_size=6))
def test_what_is_written_is_read_as_the_same_story(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    data = {
        "scenario": "a", "family": "b", "title": texts[0], "tags": ["x", "null", "1.5"],
        "facts": {"answer": {"text": texts[1], "values": texts}},
        "sessions": [
            {"at": "2026-02-01T09:00:00Z", "given": [{"text": text} for text in texts],
             "turns": [{"user": texts[2], "expect": {
                 "intent": "recall", "facts": ["answer"],
                 "answer": {"states": ["answer"], "admits_unknown": True}, "store": {"origin": None}}}]},
        ],
    }  # fmt: skip
    story = Scenario.model_validate(data)
    path = tmp_path_factory.mktemp("yaml") / "a.yaml"
    path.write_text(document(story), encoding="utf-8", newline="\n")
    (found,) = read_scenarios(path)
    assert found.model_dump() == story.model_dump()


def test_a_story_is_written_as_people_write_it(tmp_path: Path) -> None:
    found = imported("letta", tmp_path)
    text = (found.folder / "stories/sound/one-fact/letta-g000.yaml").read_text(encoding="utf-8")
    assert (
        text.split("\n", 3)[3]
        == """\
scenario: letta-g000-q0
family: letta-g000
title: What does Ann Marrow play?
tags: [letta, one-fact, quoted-fact]
facts:
  answer:
    text: Ann Marrow plays the tuba.
    values: [tuba]
    key: letta.g000.q0
sessions:
  - at: 2026-01-05T09:00:00Z
    given:
      - text: Ann Marrow plays the viola.
      - text: Ann Marrow lives in Tarnvik.
      - text: Ann's boss is Bo Lund.
    turns:
      - user: "Please correct what you know: Ann Marrow plays the tuba."
        expect:
          intent: update
          facts: [answer]
  - at: 2026-01-06T09:00:00Z
    turns:
      - user: What does Ann Marrow play?
        expect:
          intent: recall
          facts: [answer]
          answer: {states: [answer]}
"""
    )


# the command


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(import_, [str(arg) for arg in args])


def test_the_command_shows_what_was_made_and_what_was_left_out(tmp_path: Path) -> None:
    result = run("locomo", locomo(tmp_path), "--out", tmp_path / "out", "--limit", "4")
    assert result.exit_code == 0, result.output
    for told in (
        "LoCoMo, licence CC BY-NC 4.0",
        "stories",
        "by --limit",
        "no story: ",
        "malformed evidence id",
    ):
        assert told in result.output
    assert f"memeval scenarios validate {tmp_path / 'out'}" in result.output
    assert f"memeval retrieval {tmp_path / 'out/retrieval/locomo-conv-1.yaml'}" in result.output


def test_the_command_as_json(tmp_path: Path) -> None:
    data = json.loads(run("bfcl", bfcl(tmp_path), "--out", tmp_path / "out", "--given", "--json").stdout)
    assert data["import"] == "bfcl"
    assert {"group": "made", "what": "stories", "count": 4} in data["counts"]
    assert [Path(sweep).name for sweep in data["sweeps"]] == ["bfcl-sailor.yaml"]


def test_given_is_an_option_of_bfcl_alone(tmp_path: Path) -> None:
    result = run("locomo", locomo(tmp_path), "--given")
    assert result.exit_code == 2
    assert "--given is for bfcl" in result.output
