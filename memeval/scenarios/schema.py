"""What a scenario file may say. The same models validate files and export the JSON Schema editors use."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr

from memeval.messages import Intent
from memeval.records import Kind, Origin
from memeval.yamlfile import Lines, locate

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=80)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Stage = Literal["called", "arguments", "stored", "retrieved", "answered"]
Strength = Literal["named", "please", "dont_forget", "save_it", "preference", "mention"]
Split = Literal["dev", "test"]

SAVE_TOOL = "{save_tool}"
"""Stands in a user's words for the name of the design's own saving tool."""


_SHOWN = {"at", "user", "channel", "given", "options", "final_score"}


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Fact(_Strict):
    """A named piece of information that the story plants, asks for, changes or forgets."""

    text: Text
    """The fact as one sentence."""
    values: Annotated[list[Text], Field(min_length=1)]
    """The forms its value may take in an answer or a record; any one of them counts."""
    key: str = ""
    """Its topic key, for designs that keep keys: `user.language_preference`."""
    guessable: bool = False
    """A model may know the value without any memory, so that naming it proves nothing: Canberra."""


class Answer(_Strict):
    """What the reply must do. Names of facts, except for the last."""

    confirms: list[Name] = []
    """The value is given or saving is claimed, and nothing is refused."""
    states: list[Name] = []
    """The value is given as the answer: not denied, not asked back, not told as what was before."""
    avoids: list[Name] = []
    """The value is not given as the answer; with `admits_unknown` it is not named at all."""
    admits_unknown: bool = False
    """The reply says that it does not know."""

    @property
    def asks(self) -> bool:
        """Whether anything is asked of the reply."""
        return bool(self.confirms or self.states or self.avoids or self.admits_unknown)


class Store(_Strict):
    """What the store must hold when the turn is over."""

    holds: list[Name] = []
    lacks: list[Name] = []
    origin: Origin | None = "tool"
    """Whose writes count; null counts all."""


class Calls(_Strict):
    """Which calls a turn must make, by intent. An empty list: no call of a memory tool at all."""

    intents: list[Intent] = []
    """Each needs a call of its own."""
    extra: bool = True
    """Whether further calls may be made."""
    ordered: bool = False
    """Whether they must come in this order: look it up, then change it."""


class Expect(_Strict):
    """What should happen in a turn, whatever the design."""

    intent: Intent = "none"
    """What the turn calls for."""
    facts: list[Name] = []
    """The facts the intent is about."""
    required: list[Stage] = []
    """Stages without which the story has not passed."""
    forbid: list[Intent] = []
    """Intents no executed call of this turn may serve: a decoy must not be saved."""
    calls: Calls | None = None
    """The calls to be made where the intent alone does not say it; left out, nothing is asked of them."""
    answer: Answer = Answer()
    store: Store | None = None


class Turn(_Strict):
    """One message of the user and what it should lead to."""

    user: Text
    """What the user says. `{save_tool}` stands for the name of the design's own saving tool; a design without
    one is not run on the story."""
    paraphrases: list[Text] = []
    """The same said in other words, for sweeps that ask how much the wording matters."""
    strength: Strength | None = None
    """How strongly the turn asks for memory: the rung of the ask-strength ladder, from `named` (the saving
    tool is named) down to `mention` (the fact is only mentioned)."""
    expect: Expect | None = None
    """Nothing is judged where this is left out."""
    filler: Annotated[int, Field(ge=0, le=500)] = 0
    """Exchanges of small talk that stand in the conversation before this turn; no model is asked for them."""


class Given(_Strict):
    """A record that is in the store when a session starts."""

    text: Text
    kind: Kind | None = None
    """Left out, it is a kind that the design looks for, so that all designs find what the story gives."""
    key: str = ""
    """Its topic key; a topic under this key for designs that keep topics."""
    tags: list[str] = []
    fields: dict[str, str | int | float | bool] = {}
    """What is kept beside the text, such as the title of an observation."""
    final_score: Annotated[float, Field(ge=0, le=10, strict=False)] | None = None
    critic: Annotated[float, Field(ge=1, le=5, strict=False)] | None = None
    rating: Annotated[float, Field(ge=-3, le=3, strict=False)] | None = None


class Session(_Strict):
    """A conversation. The next session knows nothing of it but what memory kept."""

    at: Annotated[datetime, Field(strict=False), AfterValidator(_utc)] = datetime(2026, 1, 1, 9, tzinfo=UTC)
    """When it starts; memories are stamped with the story's time. UTC where no zone is given."""
    user: Name = "user"
    channel: str = ""
    given: list[Given] = []
    options: dict[str, Any] = {}
    """Model options for this session, such as a small num_ctx."""
    final_score: Annotated[float, Field(ge=0, le=10, strict=False)] | None = None
    """What the session was worth, for designs that weigh memories by it."""
    turns: Annotated[list[Turn], Field(min_length=1)]


class Scenario(_Strict):
    """A story: sessions of user turns, the facts they carry, what should happen."""

    scenario: Name
    """Its id, unique among all scenarios of a run."""
    family: Name
    """Scenarios that share a fact or an idea; the unit of every statistic."""
    title: Text
    tags: list[Name] = []
    facts: dict[Name, Fact] = {}
    sessions: Annotated[list[Session], Field(min_length=1)]

    _source: Path | None = PrivateAttr(default=None)
    _lines: Lines = PrivateAttr(default_factory=dict)

    @property
    def split(self) -> Split:
        """`dev` or `test`, by a hash of the family: rules and prompts may be tuned on `dev` alone."""
        return "test" if hashlib.sha256(self.family.encode()).digest()[0] % 2 else "dev"

    @property
    def needs_save_tool(self) -> bool:
        """Whether the user names the design's saving tool."""
        return any(SAVE_TOOL in turn.user for session in self.sessions for turn in session.turns)

    @property
    def source(self) -> Path | None:
        """The file it was read from."""
        return self._source

    def line(self, *loc: str | int) -> int | None:
        """The line of its file where a part of it stands: `line("facts", "language")`."""
        return locate(self._lines, loc) if self._lines else None

    def shown(self) -> dict[str, Any]:
        """What a model is shown of the story: part of the trial key. Expectations are not in it."""
        sessions = [
            {
                **s.model_dump(mode="json", include=_SHOWN),
                "turns": [[t.filler, t.user] if t.filler else t.user for t in s.turns],
            }
            for s in self.sessions
        ]
        return {"scenario": self.scenario, "sessions": sessions}

    def expected(self) -> dict[str, Any]:
        """What is judged: versioned apart from the trial key, so that a rescore needs no model."""
        turns = [[t.expect and t.expect.model_dump(mode="json") for t in s.turns] for s in self.sessions]
        return {"facts": {n: f.model_dump(mode="json") for n, f in self.facts.items()}, "turns": turns}
