"""The rows a run is kept as, one dataclass a table. Field names are the vocabulary, in frames too.

A stage is true, false, or null: null where it does not apply or where a stage it depends on is broken.
What is the same for all trials of a cell (model, digest, settings, fidelity, ...) is a `CellRow` in the
manifest and is joined on when a run is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from memeval.messages import WRITES
from memeval.scenarios.schema import Turn

Outcome = Literal["ok", "model_failure", "invalid"]
STAGES = ("called", "arguments", "stored", "retrieved", "answered")


@dataclass(slots=True, kw_only=True)
class CellRow:
    """Everything that trials compared within a run may differ in, but scenario and repeat."""

    cell: str
    design: str
    variant: str = ""  # design with the settings that differ from its defaults: "local2_dual write_path=tool"
    design_settings: str = "{}"
    design_hash: str = ""
    description_tokens: int = 0  # words and signs of all tool descriptions, as `\w+|[^\w\s]` counts them
    write_path: str = ""
    tools: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    shape: str = "as_written"  # the surface: as_written | merged | split
    names: str = "as_written"  # as_written | neutral
    words: str = "as_written"  # as_written | terse | when_to_use | length_matched
    tool_order: str = "balanced"
    perturb: tuple[str, ...] = ()  # drawn for each repeat: order | names | request | distractors
    serves: tuple[str, ...] = ()  # intents that some tool of the design could serve
    model: str = ""
    model_digest: str = ""
    calling: str = ""
    smoke: bool = False  # a smoke test, not a measurement of anyone's model
    embedder: str = ""
    prefix: str = ""
    embedder_fingerprint: str = ""
    store: str = ""
    options: str = "{}"
    fidelity: str = "unverified"  # readable | unreadable | unverified | overridden
    fidelity_notes: tuple[str, ...] = ()
    tool_tax: int | None = None  # prompt tokens that the tools cost


@dataclass(slots=True, kw_only=True)
class TrialRow:
    """One attempt at one scenario x design x model x settings x repeat. Writing it commits the trial."""

    trial_key: str
    attempt: int = 1
    cell: str = ""
    scenario: str = ""
    family: str = ""
    split: str = ""  # dev | test, by the family
    tags: tuple[str, ...] = ()
    repeat: int = 0
    seed: int = 0
    order: str = ""  # read_first | write_first | as_written | shuffled
    perturbed_names: str = "as_written"  # of this repeat: as_written | neutral; `names` is the cell's
    request: str = "as_written"  # the user's words: as_written | paraphrased
    distractors: str = "none"  # tools of other purposes beside the design's: none | some
    outcome: Outcome = "ok"
    failure: str = ""  # which model_failure, and what it said
    invalid_reason: str = ""
    passed: bool | None = None  # null when invalid
    called: bool | None = None
    arguments: bool | None = None
    stored: bool | None = None
    retrieved: bool | None = None
    answered: bool | None = None
    broken_at: str = ""  # first broken stage of the first broken turn: "s1t2 called"
    phantom_save: bool | None = None  # some turn claimed a save that did not happen
    leaked_call: bool | None = None
    leaked_intent: str = ""
    calls: int = 0
    rounds: int = 0
    unknown_tools: int = 0
    bad_arguments: int = 0
    coerced: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    hook_tokens: int = 0  # of the model, asked by the design itself, prompt and output
    hook_requests: int = 0
    peak_context: int = 0  # prompt and output of the longest request, as the server counted them
    peak_prompt: int = 0
    hooks: dict[str, int] = field(default_factory=dict)  # how often each hook of the design did something
    counts: dict[str, int] = field(default_factory=dict)  # what the design counted: stubs, rewrites, ...
    seconds_model: float = 0.0
    loads: int = 0  # requests for which the server loaded the model, again if it did not stay
    seconds_hooks: float = 0.0  # waiting for the model on the design's behalf
    seconds_harness: float = 0.0  # the rest: tools, store, embedder, the loop
    seconds_after_turn: float = 0.0  # of the two above, what after_turn took with all it waited for
    started_at: str = ""
    loop_version: int = 0
    scorer: str = ""
    expected: str = ""  # digest of the expectations it was judged by, where not those of the manifest


@dataclass(slots=True, kw_only=True)
class TurnRow:
    """One user turn. `called_intent` is the first executed call's main intent, `none` without a call."""

    trial_key: str
    attempt: int = 1
    session: int = 0
    turn: int = 0
    perturbed_names: str = "as_written"  # these three as its trial's
    request: str = "as_written"
    distractors: str = "none"
    intent: str = ""  # what the turn called for; "" where nothing is judged
    decoy: bool = False  # the turn forbids saving
    strength: str = ""  # how strongly it asks for memory: named | please | ... | mention
    called_intent: str = "none"
    called_tool: str = ""
    passed: bool | None = None
    called: bool | None = None
    arguments: bool | None = None
    stored: bool | None = None
    retrieved: bool | None = None
    answered: bool | None = None
    phantom_save: bool | None = None
    leaked_call: bool | None = None
    leaked_intent: str = ""
    wrote: int = 0  # successful writes of origin `tool` in this turn
    calls: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    seconds_model: float = 0.0

    def expecting(self, turn: Turn) -> None:
        """Write down what the story expects of the turn."""
        self.intent = turn.expect.intent if turn.expect else ""
        self.decoy = bool(turn.expect and WRITES.intersection(turn.expect.forbid))
        self.strength = turn.strength or ""


@dataclass(slots=True, kw_only=True)
class CallRow:
    """One call as the model made it, executed, refused or leaked."""

    trial_key: str
    attempt: int = 1
    session: int = 0
    turn: int = 0
    round: int = 0
    call: int = 0
    name: str = ""
    arguments: Any = None
    intent: str = ""
    status: str = "ok"  # ok | tool_error | timeout | unknown_tool | bad_arguments | leaked | not_run
    coerced: bool = False
    written: tuple[str, ...] = ()
    text: str = ""  # what the model got back, capped
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class HitRow:
    """One memory shown to the model, by a call (its number) or by injection (call -1)."""

    trial_key: str
    attempt: int = 1
    session: int = 0
    turn: int = 0
    call: int = -1
    rank: int = 1
    record: str = ""
    kind: str = ""
    origin: str = ""
    score: float = 0.0
    cosine: float | None = None
    keyword: float | None = None


@dataclass(slots=True, kw_only=True)
class VerdictRow:
    """A trial judged again. What it says stands in place of the same columns of the trial's rows.

    `turns` has one entry a turn: its `session` and `turn`, and the columns of its row that are judged or
    expected.
    """

    trial_key: str
    attempt: int = 1
    judged_at: str = ""
    scorer: str = ""
    expected: str = ""
    family: str = ""
    split: str = ""
    tags: tuple[str, ...] = ()
    passed: bool | None = None
    called: bool | None = None
    arguments: bool | None = None
    stored: bool | None = None
    retrieved: bool | None = None
    answered: bool | None = None
    broken_at: str = ""
    phantom_save: bool | None = None
    turns: list[dict[str, Any]] = field(default_factory=list)


REJUDGED: Mapping[str, Any] = {
    spec.name: spec.default
    for spec in fields(VerdictRow)
    if spec.name not in ("trial_key", "attempt", "judged_at", "turns")
}
"""The columns of a trial row that a verdict row takes the place of, with their defaults."""


@dataclass(slots=True, kw_only=True)
class Transcript:
    """Everything said in one trial, for a person to read; kept apart from the small rows."""

    trial_key: str
    attempt: int = 1
    messages: list[dict[str, Any]] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)  # what each turn was judged from
