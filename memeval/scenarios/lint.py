"""What the schema cannot see: stories that would pass without memory, or fail for the wrong reason."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from memeval.scenarios.loader import fact_names
from memeval.scenarios.schema import SAVE_TOOL, Answer, Expect, Fact, Scenario, Turn

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
    return found + _shared_values(scenarios)


def _turns(scenario: Scenario) -> Iterator[tuple[Place, int, int, Turn]]:
    for s, session in enumerate(scenario.sessions):
        for t, turn in enumerate(session.turns):
            yield ("sessions", s, "turns", t), s, t, turn


def _echo(scenario: Scenario) -> Found:
    for place, _, _, turn in _turns(scenario):
        for name in turn.expect.answer.states if turn.expect else ():
            value = _named(turn.user, scenario.facts[name])
            if value:
                message = f"the question names {value!r}, its own answer: an echo would pass"
                yield (*place, "user"), "echo", message


def _machinery(scenario: Scenario) -> Found:
    for place, _, _, turn in _turns(scenario):
        match = _MACHINERY.search(turn.user.replace(SAVE_TOOL, ""))
        if match:
            yield (*place, "user"), "machinery", f"the user says {match[0]!r}: name no tool and no design"


def _strength(scenario: Scenario) -> Found:
    for place, _, _, turn in _turns(scenario):
        if (turn.strength == "named") != (SAVE_TOOL in turn.user):
            message = f"`strength: named` and {SAVE_TOOL} in the user's words belong together"
            yield (*place, "user"), "named-tool", message


def _weak_values(scenario: Scenario) -> Found:
    for name, fact in scenario.facts.items():
        for i, value in enumerate(fact.values):
            plain = _plain(value)
            if len(plain) < 2 or _COMMON.fullmatch(plain):
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
    for place, _, _, turn in _turns(scenario):
        answer = turn.expect.answer if turn.expect else Answer()
        for avoided in answer.avoids:
            for stated in answer.states:
                pairs = product(scenario.facts[avoided].values, scenario.facts[stated].values)
                clash = next(((a, s) for a, s in pairs if _plain(a) in _plain(s)), None)
                if clash:
                    message = f"{clash[0]!r}, to avoid, is part of {clash[1]!r}, to state: none can pass"
                    yield (*place, "expect", "answer"), "overlapping-values", message


def _decoys(scenario: Scenario) -> Found:
    if "decoy" not in scenario.tags:
        return
    if not any(turn.expect and set(turn.expect.forbid) >= SAVES for *_, turn in _turns(scenario)):
        yield ("tags",), "decoy-without-forbid", "a decoy must forbid remember, note and update in some turn"


def _nothing_expected(scenario: Scenario) -> Found:
    if not any(turn.expect and _judges(turn.expect) for *_, turn in _turns(scenario)):
        yield ("sessions",), "nothing-expected", "no turn expects anything, so every run passes"


def _judges(expect: Expect) -> bool:
    told = expect.required or expect.forbid or expect.answer != Answer() or expect.store
    return bool(told) or expect.intent != "none"


def _shared_values(scenarios: Sequence[Scenario]) -> list[Finding]:
    """Facts that two families share: they would be counted as independent, and are not."""
    owners: dict[str, Scenario] = {}
    found = []
    for scenario in scenarios:
        for name, fact in scenario.facts.items():
            for i, value in enumerate(fact.values):
                other = owners.setdefault(_plain(value), scenario)
                if other.family != scenario.family:
                    line = scenario.line("facts", name, "values", i)
                    message = (
                        f"the value {value!r} is also in {other.scenario!r}, of family {other.family!r}; "
                        "put both in one family or change one"
                    )
                    found.append(Finding(scenario.scenario, scenario.source, line, "shared-value", message))
                    break
    return found


def _named(text: str, fact: Fact) -> str | None:
    """The first value form that stands in a text as whole words."""
    plain = _plain(text)
    return next((v for v in fact.values if re.search(rf"(?<!\w){re.escape(_plain(v))}(?!\w)", plain)), None)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


_RULES: Sequence[Callable[[Scenario], Found]] = (
    _echo, _machinery, _weak_values, _unused_facts, _never_planted, _time_order, _overlapping, _decoys,
    _strength, _nothing_expected,
)  # fmt: skip
