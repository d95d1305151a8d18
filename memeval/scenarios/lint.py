"""What the schema cannot see: stories that would pass without memory, or fail for the wrong reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from memeval.messages import READS
from memeval.scenarios.loader import fact_names
from memeval.scenarios.schema import SAVE_TOOL, Answer, Expect, Fact, Scenario, Store, Turn

SAVES = frozenset({"remember", "note", "update"})
_COMMON = re.compile(
    r"a|all|and|any|are|bad|can|day|do|false|first|for|good|has|have|he|her|his|in|is|it|last|me|my|new|next|no"
    r"|none|not|now|of|ok|okay|on|one|or|our|she|so|some|that|the|their|them|there|they|this|time|to|today"
    r"|tomorrow|true|two|user|was|we|yes|yesterday|you|your"
)
_MACHINERY = re.compile(
    r"\b(?:(?:memory|save|recall|search|store)_\w+|\w+_(?:memory|topic|memories)|local2\w*|tool calls?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at. `rule` is a short name that stays the same, `message` says what to do."""

    scenario: str
    file: Path | None
    line: int | None
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file or '?'}:{self.line or '?'}: {self.scenario}: {self.message} [{self.rule}]"


Place = tuple[str | int, ...]
Found = Iterator[tuple[Place, str, str]]


def lint(scenarios: Sequence[Scenario]) -> list[Finding]:
    """All findings over some scenarios, in their order; none for stories that are sound."""
    found = [
        Finding(scenario.scenario, scenario.source, scenario.line(*place), rule, message)
        for scenario in scenarios
        for check in _RULES
        for place, rule, message in check(scenario)
    ]
    return found + _shared_values(scenarios) + _said_twice(scenarios)


def turns(scenario: Scenario) -> Iterator[tuple[Place, Turn]]:
    """The turns of a story, each with its place in the document."""
    for s, session in enumerate(scenario.sessions):
        for t, turn in enumerate(session.turns):
            yield ("sessions", s, "turns", t), turn


def _echo(scenario: Scenario) -> Found:
    for place, turn in turns(scenario):
        asked = [(("user",), turn.user), *((("paraphrases", i), p) for i, p in enumerate(turn.paraphrases))]
        for name in turn.expect.answer.states if turn.expect else ():
            fact = scenario.facts[name]
            for where, text in asked:
                if value := _named(text, fact):
                    message = f"the question names {value!r}, its own answer: an echo would pass"
                    yield (*place, *where), "echo", message
                elif word := _part_named(text, name, fact):
                    message = f"the question names {word!r}, a part of its own answer: ask without it"
                    yield (*place, *where), "leak", message


def _part_named(text: str, name: str, fact: Fact) -> str | None:
    """A word of a text that gives a part of the fact's value away: it is rare and not what the fact is about.

    Words of the fact's name and key are what it is about: "tea" of `user.favourite_tea`, in "Earl Grey tea".
    """
    said, topic = set(_words(text)), set(_words(f"{name} {fact.key}"))
    for words in map(_words, fact.values):
        for word in words if len(words) > 1 else ():
            if len(word) > 3 and word in said and word not in topic and not _COMMON.fullmatch(word):
                return word
    return None


def _named_by_a_question(scenario: Scenario) -> Found:
    """A question of a later session that names what is still to be asked for tells it once more."""
    asked = {  # where each fact is last asked of each user
        (scenario.sessions[int(place[1])].user, name): place
        for place, turn in turns(scenario)
        for name in (turn.expect.answer.states if turn.expect else ())
    }
    told: dict[str, set[str]] = {}
    for s, session in enumerate(scenario.sessions):
        known = told.setdefault(session.user, set())
        for t, turn in enumerate(session.turns):
            for name in sorted(known) if _is_question(turn) else ():
                fact = scenario.facts[name]
                value = _named(turn.user, fact) or _part_named(turn.user, name, fact)
                if value and asked.get((session.user, name), ()) > (place := ("sessions", s, "turns", t)):
                    message = f"this question names {value!r}, and a later turn asks for {name!r}"
                    yield (*place, "user"), "leak", message
        texts = [*(given.text for given in session.given), *(turn.user for turn in session.turns)]
        known |= {name for name, fact in scenario.facts.items() if any(_named(text, fact) for text in texts)}


def _is_question(turn: Turn) -> bool:
    """Whether a turn asks, and does not tell something that the store is to hold."""
    expect = turn.expect or Expect()
    asks = expect.intent == "none" and turn.user.rstrip().endswith("?")
    return (asks or expect.intent in READS) and not (expect.store and expect.store.holds)


def _machinery(scenario: Scenario) -> Found:
    for place, turn in turns(scenario):
        match = _MACHINERY.search(turn.user.replace(SAVE_TOOL, ""))
        if match:
            yield (*place, "user"), "machinery", f"the user says {match[0]!r}: name no tool and no design"


def _strength(scenario: Scenario) -> Found:
    for place, turn in turns(scenario):
        if (turn.strength == "named") != (SAVE_TOOL in turn.user):
            message = f"`strength: named` and {SAVE_TOOL} in the user's words belong together"
            yield (*place, "user"), "named-tool", message


def _weak_values(scenario: Scenario) -> Found:
    for name, fact in scenario.facts.items():
        for i, value in enumerate(fact.values):
            text = plain(value)
            if len(text) < 2 or _COMMON.fullmatch(text):
                yield (
                    ("facts", name, "values", i),
                    "weak-value",
                    f"the value {value!r} of {name!r} turns up in any answer; give a rarer one",
                )


def _unused_facts(scenario: Scenario) -> Found:
    used = {name for _, name in fact_names(scenario)}
    for name in scenario.facts:
        if name not in used:
            yield ("facts", name), "unused-fact", f"no expectation uses the fact {name!r}"


def _never_planted(scenario: Scenario) -> Found:
    said: dict[str, list[str]] = {}
    for s, session in enumerate(scenario.sessions):
        known = said.setdefault(session.user, [])
        known += [given.text for given in session.given]
        for t, turn in enumerate(session.turns):
            for i, name in enumerate(turn.expect.answer.states if turn.expect else ()):
                if not any(_named(text, scenario.facts[name]) for text in known):
                    yield (
                        ("sessions", s, "turns", t, "expect", "answer", "states", i),
                        "never-planted",
                        f"the answer must state {name!r}, but nothing told {session.user!r} its value before",
                    )
            known.append(turn.user)


def _time_order(scenario: Scenario) -> Found:
    for s, (before, after) in enumerate(zip(scenario.sessions, scenario.sessions[1:], strict=False), 1):
        if after.at <= before.at:
            yield ("sessions", s), "time-order", f"session {s + 1} is not later than session {s}: set `at`"


def _overlapping(scenario: Scenario) -> Found:
    for place, turn in turns(scenario):
        if turn.expect is None:
            continue
        answer, store = turn.expect.answer, turn.expect.store
        if clash := _clash(scenario, answer.avoids, answer.states):
            message = f"{clash[0]!r}, to avoid, is part of {clash[1]!r}, to state: none can pass"
            yield (*place, "expect", "answer"), "overlapping-values", message
        if store and (clash := _clash(scenario, store.lacks, store.holds)):
            message = f"{clash[0]!r}, to be lacking, is part of {clash[1]!r}, to be held: none can pass"
            yield (*place, "expect", "store"), "overlapping-values", message


def _clash(scenario: Scenario, out: Sequence[str], within: Sequence[str]) -> tuple[str, str] | None:
    """A value that must not be there and is part of one that must."""
    wrong = [value for name in out for value in scenario.facts[name].values]
    right = [value for name in within for value in scenario.facts[name].values]
    return next(((w, r) for w, r in product(wrong, right) if plain(w) in plain(r)), None)


def _contradictions(scenario: Scenario) -> Found:
    """Two facts of a user under one key, and nothing in the story says which of them holds."""
    for (one, fact), (two, other) in combinations(scenario.facts.items(), 2):
        if fact.key and fact.key == other.key and plain(fact.text) != plain(other.text):
            both = any(_tells(scenario, user, one, two) for user in {s.user for s in scenario.sessions})
            if both and not _settled(scenario, {one, two}):
                message = (
                    f"{one!r} and {two!r} have the key {fact.key!r} and differ, and no turn updates one or "
                    "says which holds; give them two keys, or say it"
                )
                yield ("facts", two), "contradiction", message


def _tells(scenario: Scenario, user: str, *names: str) -> bool:
    """Whether a user, or the memory of that user, names the value of each fact."""
    sessions = [session for session in scenario.sessions if session.user == user]
    texts = [given.text for s in sessions for given in s.given] + [t.user for s in sessions for t in s.turns]
    return all(any(_named(text, scenario.facts[name]) for text in texts) for name in names)


def _settled(scenario: Scenario, names: set[str]) -> bool:
    """Whether one of two facts replaces the other, is forgotten or to be avoided, or both hold together."""
    for _, turn in turns(scenario):
        if (expect := turn.expect) is None:
            continue
        store = expect.store or Store()
        changes = names.intersection(expect.facts) and expect.intent in ("update", "forget")
        if changes or names.intersection(expect.answer.avoids + store.lacks):
            return True
        if names <= set(expect.answer.states) or names <= set(store.holds):
            return True
    return False


def _decoys(scenario: Scenario) -> Found:
    if "decoy" not in scenario.tags:
        return
    if not any(turn.expect and set(turn.expect.forbid) >= SAVES for _, turn in turns(scenario)):
        yield ("tags",), "decoy-without-forbid", "a decoy must forbid remember, note and update in some turn"


def _nothing_expected(scenario: Scenario) -> Found:
    if not any(turn.expect and _judges(turn.expect) for _, turn in turns(scenario)):
        yield ("sessions",), "nothing-expected", "no turn expects anything, so every run passes"


def _judges(expect: Expect) -> bool:
    told = expect.required or expect.forbid or expect.answer != Answer() or expect.store or expect.calls
    return bool(told) or expect.intent != "none"


def _shared_values(scenarios: Sequence[Scenario]) -> list[Finding]:
    """Facts that two families share: they would be counted as independent, and are not."""
    owners: dict[str, Scenario] = {}
    found = []
    for scenario in scenarios:
        for name, fact in scenario.facts.items():
            for i, value in enumerate(fact.values):
                other = owners.setdefault(plain(value), scenario)
                if other.family != scenario.family:
                    line = scenario.line("facts", name, "values", i)
                    message = (
                        f"the value {value!r} is also in {other.scenario!r}, of family {other.family!r}; "
                        "put both in one family or change one"
                    )
                    found.append(Finding(scenario.scenario, scenario.source, line, "shared-value", message))
                    break
    return found


def _said_twice(scenarios: Sequence[Scenario]) -> list[Finding]:
    """Texts that two families share, and stories whose sessions are equal, expectations included."""
    texts: dict[str, Scenario] = {}
    stories: dict[str, Scenario] = {}
    found = []
    for scenario in scenarios:
        twin = stories.setdefault(str([s.model_dump() for s in scenario.sessions]), scenario)
        if twin is not scenario:
            message = f"its sessions equal those of {twin.scenario!r}: one story would count twice"
            line = scenario.line("sessions")
            found.append(Finding(scenario.scenario, scenario.source, line, "duplicate-story", message))
            continue
        for place, turn in turns(scenario):
            other = texts.setdefault(plain(turn.user), scenario)
            if other.family != scenario.family:
                message = f"{other.scenario!r}, of family {other.family!r}, has the same words: change one"
                line = scenario.line(*place, "user")
                found.append(Finding(scenario.scenario, scenario.source, line, "duplicate-text", message))
    return found


def _named(text: str, fact: Fact) -> str | None:
    """The first value form that stands in a text as whole words."""
    said = plain(text)
    return next((v for v in fact.values if re.search(rf"(?<!\w){re.escape(plain(v))}(?!\w)", said)), None)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", plain(text))


def plain(text: str) -> str:
    """Text as it is compared: NFKC, case folded, blanks single."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


_RULES: Sequence[Callable[[Scenario], Found]] = (
    _echo, _named_by_a_question, _machinery, _weak_values, _unused_facts, _never_planted, _time_order,
    _overlapping, _contradictions, _decoys, _strength, _nothing_expected,
)  # fmt: skip
