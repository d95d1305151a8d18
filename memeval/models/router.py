"""A machine without a language model: calls the nearest tool, copies, quotes. For smoke tests."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from memeval.embedding.base import Embedder, Purpose, Vectors
from memeval.errors import InputError
from memeval.messages import Message, Reply, Tool, ToolCall
from memeval.models.base import CallingMode, Options

FLOOR = 0.25
"""The cosine below which no tool is called.

Measured once with MiniLM on both LoCAL2 designs and a list of 6 requests to remember, 6 questions about
what was said and 10 of small talk, all made for this: small talk at most 0.18 (n=20); requests and
questions 0.13 to 0.63 (n=24), two of them below 0.25, the next 0.29.
"""

_RULES = 2  # Part of the digest: to be raised with every change of a rule below.

_CUE = re.compile(
    r"(?:^|[.!;:,]\s+|\b(?:please|and)\s+|\b(?:can|could|will|would) you\s+(?:please\s+)?)"
    r"(?:remember|note|keep(?: it| this| that)? in mind|(?:don't|do not|never) forget|save|store|memori[sz]e"
    r"|make a note|write down)\b(?:\s+(?:that|this|it|down|of|the fact that)\b)*\s*[:,]?\s*",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^(?:what|which|who|whose|when|where|how|why|do|did|does|is|are|am|was)\b", re.IGNORECASE
)
_OURS = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours|remember|recall|told|know about)\b", re.IGNORECASE)
_IS = re.compile(
    r"^(?P<key>.{2,60}?)(?:\s+(?:is|are|was|were)(?:\s+(?:called|named))?\s+|\s*=\s*)(?P<value>.+)$", re.I
)
_WORD = re.compile(r"\w+")
_STOP = frozenset(
    _WORD.findall(
        "a about am an and are at be been by call called can could d did do does for from had has have how i "
        "in is it its ll m me my of on or our please re s t that the their them there they this to use was "
        "we were what when where which who whose why will with would you your"
    )
)
_ROLES: Mapping[str, frozenset[str]] = {
    "query": frozenset({"query", "question", "q", "search"}),
    "key": frozenset({"topic", "key", "subject", "name"}),
    "content": frozenset({"content", "text", "note", "value", "fact", "memory"}),
}
_NUMBER = re.compile(r"^(?P<number>\d+)\.\s*(?:\([^)]*\))?\s*(?:\d{4}-\d\d-\d\d)?\s*(?P<rest>.*)$")


class RouterModel:
    """`bundled:router`. It shows the flow; its numbers are a smoke test and no measurement of a model.

    Which tool. The message is put as a request: `Save what the user asks to remember: ...` if a clause opens
    with remember, note, keep in mind, don't forget, save, store, ...; `Search memory for what the user asks
    about: ...` if it is a question with I, my, our, remember, recall, ... in it; else as it stands. The tool
    whose `name: description` is nearest by cosine is called, none below FLOOR, the first listed on a tie.
    (The bare message will not do: what it is about outweighs what it asks for, and requests reach -0.04 to
    0.24 where small talk reaches 0.14.)

    Arguments, by name and type of the property. query, question: the message. content, text, note, value,
    fact: the clause after the cue (before it if nothing follows), or only its value, as in "KEY is VALUE",
    where the tool takes a key as well. topic, key: `user.` and the content words of KEY, at most four:
    "my preferred language is Elixir" gives `user.preferred_language` and `Elixir`. For a question they are
    the question's own words, so an exact lookup mostly misses: it knows no keys. For the same reason a key
    that is optional beside a query is left out. An `enum`: the first choice named in the message, else the
    first. Any other property is left out unless it is required: then its default, or the message, the
    minimum, false, [] or {}.

    Answers. After a tool that reads: the first hit, quoted, or "I do not know."; after one that writes:
    "OK: " and the content, which names the value and never claims a save. Without a call: "I do not know."
    to a question, else "All right.". One call a turn.
    """

    name = "bundled:router"
    smoke = True
    modes: tuple[CallingMode, ...] = ("native",)

    def __init__(self, embedder: Embedder | None = None) -> None:
        """`embedder` is `bundled:minilm` if none is given, opened at first use."""
        self._given = embedder
        self._vectors: dict[tuple[Purpose, str], Vectors] = {}

    @property
    def digest(self) -> str:
        """The version of the rules and the embedder's fingerprint."""
        return f"router-{_RULES}:{self._embedder.fingerprint}"

    def describe(self) -> Mapping[str, Any]:
        """What it is, by which embedder, above which cosine."""
        return {
            "kind": "no language model: the tool nearest to the message, arguments copied by rules",
            "embedder": self._embedder.name,
            "embedder_fingerprint": self._embedder.fingerprint,
            "floor": FLOOR,
        }

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        options: Options,
    ) -> Reply:
        """A call of the nearest tool, or words. Takes `tools`; a `schema` raises InputError."""
        if schema is not None:
            raise InputError(f"{self.name} writes no JSON; use calling: [native]")
        began = time.perf_counter()
        asked = max((at for at, message in enumerate(messages) if message.role == "user"), default=-1)
        user = messages[asked].content.strip() if asked >= 0 else ""
        since = messages[asked + 1 :]
        results = [message for message in since if message.role == "tool"]
        if results:
            content = _answer(results[-1], since, tools)
        elif (tool := self._nearest(user, tools)) is not None:
            call = ToolCall(tool.name, _arguments(tool, user), id=f"router-{asked}")
            return Reply(content="", tool_calls=(call,), seconds=time.perf_counter() - began)
        else:
            content = "I do not know." if _is_question(user) else "All right."
        return Reply(content=content, seconds=time.perf_counter() - began)

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        """What is handed to it, as JSON. Of a tool it reads the name, the description, and its parameters."""
        said = [
            {
                "role": message.role,
                "content": message.content,
                **({"tool_name": message.tool_name} if message.tool_name else {}),
                **(
                    {"tool_calls": [{"name": c.name, "arguments": c.arguments} for c in message.tool_calls]}
                    if message.tool_calls
                    else {}
                ),
            }
            for message in messages
        ]
        seen = {"tools": [tool.schema()["function"] for tool in tools], "messages": said}
        return json.dumps(seen, ensure_ascii=False)

    def healthy(self) -> bool:
        """Always: it needs no server."""
        return True

    def close(self) -> None:
        """Forget the vectors."""
        self._vectors.clear()

    @cached_property
    def _embedder(self) -> Embedder:
        if self._given is not None:
            return self._given
        from memeval.embedding.registry import open_embedder

        return open_embedder("bundled:minilm")

    def _nearest(self, user: str, tools: Sequence[Tool]) -> Tool | None:
        if not tools or not user:
            return None
        texts = [f"{tool.name.replace('_', ' ')}: {tool.description}" for tool in tools]
        cosines = self._embed(texts, "document") @ self._embed([_request(user)], "query")[0]
        best = int(cosines.argmax())
        return tools[best] if cosines[best] >= FLOOR else None

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        # One text at a time: a batch's padding may move the last bit, and so a tie.
        for text in texts:
            if (purpose, text) not in self._vectors:
                self._vectors[purpose, text] = self._embedder.embed([text], purpose)[0]
        return np.stack([self._vectors[purpose, text] for text in texts])


def _is_question(user: str) -> bool:
    return user.endswith("?") or _QUESTION.match(user) is not None


def _request(user: str) -> str:
    """The message put as what it asks for."""
    if _CUE.search(user):
        return f"Save what the user asks to remember: {user}"
    if _is_question(user) and _OURS.search(user):
        return f"Search memory for what the user asks about: {user}"
    return user


def _clause(user: str) -> str:
    """What is to be remembered: the words after the cue, or before it, or the message without a cue."""
    cue = _CUE.search(user)
    if cue is None:
        return user.rstrip(" .!?")
    after, before = user[cue.end() :].rstrip(" .!?"), user[: cue.start()].strip(" ,;.!")
    return (after if len(_WORD.findall(after)) > 1 or not before else before) or user


def _slug(text: str) -> str:
    words = [word for word in _WORD.findall(text.lower()) if word not in _STOP]
    return "user." + ("_".join(words[:4]) or "note")


def _arguments(tool: Tool, user: str) -> dict[str, Any]:
    """Arguments for every property that a rule fills; see RouterModel."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = set(tool.parameters.get("required", ()))
    roles = {name: role for name in properties for role, names in _ROLES.items() if name.lower() in names}
    clause = _clause(user)
    said = _IS.match(clause) if _CUE.search(user) else None
    keyed = "key" in roles.values()
    words = {
        "query": user,
        "key": _slug(said["key"] if said else clause),
        "content": said["value"] if said and keyed else clause,
    }
    out: dict[str, Any] = {}
    for name, spec in properties.items():
        role = roles.get(name, "")
        if name not in required and (not role or (role == "key" and "query" in roles.values())):
            continue
        out[name] = _value(spec if isinstance(spec, Mapping) else {}, words.get(role), user)
    return out


def _value(spec: Mapping[str, Any], words: str | None, user: str) -> Any:
    """A value of the type that a property asks for."""
    if "const" in spec:
        return spec["const"]
    if choices := spec.get("enum"):
        return next((choice for choice in choices if str(choice).lower() in user.lower()), choices[0])
    if words is None and "default" in spec:
        return spec["default"]
    kind = spec.get("type", "string")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    blank = {"integer": spec.get("minimum", 1), "number": spec.get("minimum", 1), "boolean": False}
    empty: dict[str, Any] = {**blank, "array": [], "object": {}, "null": None}
    return empty.get(kind, words or user)


def _answer(result: Message, since: Sequence[Message], tools: Sequence[Tool]) -> str:
    """What is said about a tool's result."""
    if result.content.lower().startswith("error"):
        return "That did not work."
    effect = next((tool.effect for tool in tools if tool.name == result.tool_name), "read")
    if effect == "read":
        hit = first_hit(result.content)
        return f"I found: {hit}" if hit else "I do not know."
    calls = [call for message in since for call in message.tool_calls if call.name == result.tool_name]
    given = calls[-1].arguments if calls and isinstance(calls[-1].arguments, dict) else {}
    value = next((given[name] for name in given if name.lower() in _ROLES["content"]), "")
    return f"OK: {value}." if value else "OK."


def first_hit(text: str) -> str:
    """The first thing a result lists, in one line; "" if it lists nothing.

    Reads a JSON array of objects, a numbered list, or plain lines below a `[header]`.
    """
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, list):
        first = found[0] if found else {}
        named = (
            [first[name] for name in first if name in _ROLES["content"]]
            if isinstance(first, dict)
            else [first]
        )
        return str(named[0]) if named else ""
    lines: list[str] = []
    for raw in text.splitlines():
        line = raw.strip()
        number = _NUMBER.match(line)
        if number and number["number"] != "1":
            break
        line = number["rest"] if number else line
        if line and not (line.startswith("[") and line.endswith("]")):
            lines.append(line)
    quote = " ".join(lines)
    return "" if re.match(r"(?:no|nothing)\b", quote, re.IGNORECASE) else quote
