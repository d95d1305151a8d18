"""Whether the calls of a turn are those a story expects, by intent and whatever the tools are called."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memeval.messages import Intent


def calls_match(
    made: Sequence[Collection[Intent]],
    wanted: Sequence[Intent] | None,
    *,
    extra: bool = True,
    ordered: bool = False,
) -> bool:
    """Whether calls, each given by the intents it serves, are the wanted ones.

    `wanted` None accepts anything, an empty list only no call at all. Each wanted intent needs a call of its
    own; a call that serves several intents stands for one of them. Further calls are accepted unless `extra`
    is false. With `ordered` the wanted ones must come in their order.

        calls_match([{"search"}, {"update", "remember"}], ["search", "update"], ordered=True)   # True
    """
    if wanted is None:
        return True
    if not wanted:
        return not made
    if len(made) < len(wanted) or (not extra and len(made) > len(wanted)):
        return False
    return _in_order(made, wanted) if ordered else _assigned(made, wanted)


def _in_order(made: Sequence[Collection[Intent]], wanted: Sequence[Intent]) -> bool:
    left = iter(made)
    return all(any(intent in call for call in left) for intent in wanted)


def _assigned(made: Sequence[Collection[Intent]], wanted: Sequence[Intent]) -> bool:
    """Whether every wanted intent gets a call of its own: a matching by augmenting paths (Kuhn 1955)."""
    owner: dict[int, int] = {}

    def place(intent: int, tried: set[int]) -> bool:
        for call, serves in enumerate(made):
            if wanted[intent] in serves and call not in tried:
                tried.add(call)
                if call not in owner or place(owner[call], tried):
                    owner[call] = intent
                    return True
        return False

    return all(place(intent, set()) for intent in range(len(wanted)))
