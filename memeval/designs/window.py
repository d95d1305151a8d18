"""The window a conversation has: how full it is, what of it is said shorter.

A server counts whole requests only, so what came since the last one is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence

from memeval.designs.base import Context
from memeval.designs.formats import as_json, shortened
from memeval.errors import InputError, ModelFailureError
from memeval.messages import Message, Tool

CHARACTERS_PER_TOKEN, TOKENS_PER_MESSAGE = 4, 5
"""An estimate for English, and what templates put around a message."""
FEWEST_CHARACTERS = 3
"""Of a token, where all must fit: English has four and more, but other languages and code have fewer."""
LEAST_ROOM = 300
"""Characters to summarize at once, whatever the context is."""

_SUMMARY = (
    "Summarize this conversation so that it can go on without its text. Keep names, numbers, decisions, what "
    "the user wants and what is still open, and keep how sure each thing is ('perhaps', 'not checked'). At "
    "most 150 words.\n\n{said}"
)


def check_share(name: str, value: float) -> None:
    """Raises InputError for a setting that is no share of the context."""
    if not 0 < value <= 1:
        raise InputError(f"{name} is {value}; it is a share of the context, above 0 and at most 1")


def estimated(messages: Sequence[Message]) -> int:
    """About how many tokens messages take, with the calls in them."""
    calls = [call for message in messages for call in message.tool_calls]
    written = sum(len(message.content) for message in messages)
    written += sum(len(call.name) + len(as_json(call.arguments)) for call in calls)
    return written // CHARACTERS_PER_TOKEN + TOKENS_PER_MESSAGE * len(messages)


def in_use(ctx: Context, messages: Sequence[Message], tools: Sequence[Tool]) -> int:
    """Tokens of the context that a history takes.

    The server's count of the session's last request, and an estimate of what came or went since. Before the
    first request there is no count and all is estimated, `tools` with it.
    """
    now = estimated(messages)
    if not ctx.usage.prompt:
        return now + sum(len(as_json(tool.schema())) for tool in tools) // CHARACTERS_PER_TOKEN
    counted: int = ctx.state.get(_sent(ctx), now)
    return max(ctx.usage.prompt + now - counted, 0)


def about_to_send(ctx: Context, messages: Sequence[Message]) -> None:
    """Keep the estimate of the history that the next count will be of."""
    ctx.state[_sent(ctx)] = estimated(messages)


def _sent(ctx: Context) -> str:
    return f"tokens sent:{ctx.scope.session}"


def transcript(messages: Sequence[Message]) -> str:
    """A conversation as text: who said what, which calls were made, what they gave."""
    return "\n".join(map(written, messages))


def written(message: Message) -> str:
    """A message as a line: who speaks, what is said, which calls are made."""
    calls = [f"{call.name}({as_json(call.arguments)})" for call in message.tool_calls]
    parts = [message.content] if message.content or not calls else []
    return f"{message.tool_name or message.role}: {' '.join(parts + calls)}"


def summarized(ctx: Context, messages: Sequence[Message]) -> str | None:
    """A part of the conversation in the model's own short words; None where it fails to give them.

    What is too long for one request is summarized in parts, each with the summary of those before it: a
    conversation that fills the context does not fit into it together with the wish to summarize it. A message
    that is too long by itself is parted, and a summary is cut at half of the room.
    """
    room = (ctx.options.num_ctx - ctx.options.num_predict) * FEWEST_CHARACTERS - len(_SUMMARY)
    room = max(room, LEAST_ROOM)
    said, fresh = "", False
    for message in messages:
        line = written(message)
        while line:
            left = room - len(said) - 1
            if fresh and len(line) > left:
                summary = answered(ctx, _SUMMARY.format(said=said))
                if not summary:
                    return None
                said, fresh = shortened(f"So far: {summary}", room // 2), False
                continue
            part, line = line[:left], line[left:]
            said, fresh = f"{said}\n{part}".strip(), True
    return answered(ctx, _SUMMARY.format(said=said)) or None


def answered(ctx: Context, prompt: str) -> str:
    """The model's answer, always the same to the same question; empty where it fails."""
    try:
        return ctx.ask(prompt, temperature=0.0).content.strip()
    except ModelFailureError:
        return ""
