"""Small talk that fills a conversation, so that a context runs short without anybody being asked.

An exchange is some 60 tokens, the same for every design and model. It carries no fact a story could use.
"""

from __future__ import annotations

_TOPICS = {
    "why the sky looks red in the evening":
    "Near the horizon sunlight passes through more air, which scatters the short wavelengths away, so that "
    "mostly the longer ones, orange and red, are left to reach the eye.",
    "how bread gets its crust":
    "The surface dries out in the heat of the oven and browns, while the crumb inside stays moist because "
    "steam keeps it below the boiling point until the very end of baking.",
    "what makes a tide":
    "The pull of the moon is a little stronger on the near side of the earth than on the far side, and the "
    "oceans bulge along that line while the ground turns beneath them.",
    "how a lock on a canal works":
    "A boat enters a chamber between two gates, the gates are shut, and water is let in or out until the "
    "level inside is the same as on the side where the boat wants to go.",
    "why leaves fall in autumn":
    "The tree seals the stalk with a layer of cork when the days grow short, draws back what it can use, "
    "and the leaf, no longer supplied, comes loose with the next wind.",
    "how a piano makes its tone":
    "A key throws a felt hammer against strings, the hammer falls back at once, and the strings pass their "
    "trembling over a bridge to a large board of wood that moves the air.",
    "why ice floats":
    "Water takes up more room when it freezes because its molecules stand in an open lattice, so a piece of "
    "ice weighs less than the water it pushes aside and stays on top.",
    "what a compass points at":
    "The needle lines up with the magnetic field of the earth, whose pole lies some way from the pole about "
    "which the globe turns, so that maps give the difference for each place.",
}  # fmt: skip
_ASK = (
    "Tell me briefly {}.",
    "Something else: {}, in two sentences?",
    "While we are at it, explain {} to me.",
)


def small_talk(exchanges: int, start: int = 0) -> list[tuple[str, str]]:
    """`exchanges` pairs of question and answer; `start` is how many went before, so that few repeat."""
    pairs = []
    topics = list(_TOPICS.items())
    for at in range(start, start + exchanges):
        topic, answer = topics[at % len(topics)]
        pairs.append((_ASK[at % len(_ASK)].format(topic), answer))
    return pairs
