"""The chat model contract: messages and tools in, one reply out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from memeval.messages import Message, Reply, Tool

CallingMode = Literal["native", "prompted", "constrained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that is pinned for a request, so that no server default decides a result.

    Ollama's own defaults differ by GPU (num_ctx 4096, 32768 or 262144) and by model (`think`), so all of
    these are always sent. `deadline` is the seconds one request may take in all, loading included.
    """

    num_ctx: int = 4096
    num_predict: int = 256
    temperature: float = 0.7
    top_p: float = 0.9
    top_k: int = 40
    repeat_penalty: float = 1.0
    seed: int = 0
    think: bool | str = False
    deadline: float = 300.0

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for keys and manifests."""
        return asdict(self)


class ChatModel(Protocol):
    """A model that chats. Implementations raise ModelFailureError, InfrastructureError, InputError."""

    @property
    def name(self) -> str:
        """As a sweep writes it: `ollama:qwen3:4b`, `bundled:router`."""

    @property
    def digest(self) -> str:
        """What the weights and the template are; part of every trial key."""

    @property
    def modes(self) -> tuple[CallingMode, ...]:
        """The calling modes this model can do."""

    @property
    def smoke(self) -> bool:
        """Whether its numbers are a smoke test and no measurement of anyone's model."""

    def describe(self) -> Mapping[str, Any]:
        """What a reader needs to judge a run: server version, quantisation, template hash, context."""

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        options: Options,
    ) -> Reply:
        """One reply. `tools` (native) and `schema` (constrained) are never both given."""

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        """The exact prompt the model would read, or None where it cannot be had."""

    def healthy(self) -> bool:
        """Whether the next request would be served."""

    def close(self) -> None:
        """Let go of what the model holds."""
