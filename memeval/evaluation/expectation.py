"""What a story expects of a turn, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memeval.scenarios.schema import Calls, Expect, Fact, Store

_BY = {"tool": " written by a call", "hook": " written by the design", "given": " given by the story"}


def expected(expect: Expect, facts: Mapping[str, Fact]) -> str:
    """What is expected of a turn: `to remember “Elixir”; required: called; the reply confirms “Elixir”`."""

    def listed(names: Iterable[str]) -> str:
        return quoted(facts[name] for name in names)

    answer, store = expect.answer, expect.store
    said = ["no use of memory" if expect.intent == "none" else f"to {expect.intent} {listed(expect.facts)}"]
    said += [f"no call may {' or '.join(expect.forbid)}"] if expect.forbid else []
    said += [f"required: {', '.join(expect.required)}"] if expect.required else []
    said += [wanted_calls(expect.calls)] if expect.calls else []
    for names, does in ((answer.confirms, "confirms"), (answer.states, "states"), (answer.avoids, "avoids")):
        said += [f"the reply {does} {listed(names)}"] if names else []
    said += ["the reply says that it does not know"] if answer.admits_unknown else []
    if store:
        by = by_whom(store)
        said += [f"a record{by} names {listed(store.holds)}"] if store.holds else []
        said += [f"no record{by} names {listed(store.lacks)}"] if store.lacks else []
    return "; ".join(part.strip() for part in said)


def wanted_calls(calls: Calls) -> str:
    """Which calls are to be made."""
    if not calls.intents:
        return "no call is to be made"
    listed = (", then " if calls.ordered else ", ").join(calls.intents)
    return f"calls to {listed} are to be made" + ("" if calls.extra else " and no others")


def quoted(facts: Iterable[Fact]) -> str:
    """The values of facts, as they are quoted in sentences."""
    return ", ".join(dict.fromkeys(f"“{fact.values[0]}”" for fact in facts))


def by_whom(store: Store) -> str:
    """Whose records are meant, to be put behind `a record`; nothing where all count."""
    return _BY.get(store.origin or "", "")
