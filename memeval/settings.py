"""`memory.yaml` and the environment, as validated settings. The keys and defaults are the author's own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memeval.errors import InputError, nearest

FILE = "memory.yaml"
DEFAULT_OLLAMA = "http://127.0.0.1:11434"
_FORM = "settings are plain `key: value` lines"
_MAX_BYTES = 64 * 1024
_EMBEDDER = re.compile(r"(ollama|bundled|gguf|hash):|hash$|.*\.py:")
_COLLECTION = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,158}[a-zA-Z0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where memories are kept and how they are searched. `min_score` is a cosine, so -1 to 1.

    `top_k` and `min_score` are those of `memeval memory search` and of a `MemoryService` that is given these
    settings. No sweep reads them: there each design has its own, `{local2_dual: {top_k: 8, min_score: 0.2}}`.

    `chroma_path` is relative to the working folder. An empty `ollama_host` means: ask the environment,
    else the default address.
    """

    chroma_path: str = ".chroma"
    collection: str = "local2.memory"
    embedding_model: str = "nomic-embed-text"
    top_k: int = 5
    min_score: float = 0.3
    ollama_host: str = ""

    @property
    def embedder(self) -> str:
        """The embedder as a sweep writes it: a bare model name is one of Ollama's (`ollama:<name>`)."""
        name = self.embedding_model
        return name if _EMBEDDER.match(name) else f"ollama:{name}"

    @property
    def ollama_url(self) -> str:
        """The server's address as a URL."""
        return ollama_url(self.ollama_host or None)


def load_settings(path: Path | str | None = None, env: Mapping[str, str] = os.environ) -> Settings:
    """The settings of a file, overridden by the environment: OLLAMA_HOST, then MEMEVAL_<KEY>.

    Without `path`, `memory.yaml` of the working folder is read if there is one. Raises InputError that names
    the place (file and line, or variable) of whatever is wrong.
    """
    values: dict[str, Any] = {}
    file = Path(FILE) if path is None else Path(path)
    if path is not None or file.exists():
        for key, text, where in _read(file):
            values[key] = _value(key, text, where)
    if env.get("OLLAMA_HOST", "").strip():
        values["ollama_host"] = _value("ollama_host", env["OLLAMA_HOST"], "environment variable OLLAMA_HOST")
    variables = {f"MEMEVAL_{key.upper()}": key for key in _PARSERS}
    for name, text in env.items():
        if name in variables:
            values[variables[name]] = _value(variables[name], text, f"environment variable {name}")
        elif name.startswith("MEMEVAL_"):
            # Other rooms have variables of their own, so only a likely slip of the pen is refused.
            slip = get_close_matches(name.removeprefix("MEMEVAL_").lower(), _PARSERS, n=1, cutoff=0.75)
            if slip:
                right = f"MEMEVAL_{slip[0].upper()}"
                raise InputError(f"environment variable {name} is not a setting; did you mean {right!r}?")
    return Settings(**values)


def ollama_url(host: str | None = None) -> str:
    """The URL of an Ollama server from any form OLLAMA_HOST may have; None asks the environment.

    The forms are those of Ollama's own `envconfig`: `host`, `host:port`, `:port`, with or without a scheme;
    the port is 11434 without a scheme, else the scheme's. A server's "every address" (0.0.0.0, [::]) is no
    address to call, so it becomes this machine's own. Raises InputError.
    """
    given = (os.environ.get("OLLAMA_HOST", "") if host is None else host).strip().strip("\"'").strip()
    if not given:
        return DEFAULT_OLLAMA
    scheme, found, rest = given.partition("://")
    if not found:
        scheme, rest = "http", given
    if rest.count(":") > 1 and not rest.startswith("["):
        rest = f"[{rest}]"  # a bare IPv6 address
    shown = re.sub(r"[^/]*@", "***@", given)  # a password is nobody's to read
    wrong = InputError(f"{shown!r} is not an address of an Ollama server; right would be 127.0.0.1:11434")
    try:
        url = urlsplit(f"{scheme.lower()}://{rest}")
        name, port = url.hostname or "127.0.0.1", url.port
    except ValueError:
        raise wrong from None
    if url.scheme not in ("http", "https") or url.query or url.fragment or re.search(r"\s", rest):
        raise wrong
    if port is None:
        port = {"http": 80, "https": 443}[url.scheme] if found else 11434
    try:
        ip = ip_address(name)
    except ValueError:
        pass
    else:
        name = str(ip) if not ip.is_unspecified else "127.0.0.1" if ip.version == 4 else "::1"
    login = f"{url.netloc.rpartition('@')[0]}@" if "@" in url.netloc else ""
    return f"{url.scheme}://{login}{f'[{name}]' if ':' in name else name}:{port}{url.path.rstrip('/')}"


def _read(file: Path) -> Iterator[tuple[str, str, str]]:
    """The keys of a flat YAML mapping, their values as written, and where each stands.

    The parser's events are read instead of built values: an alias never unfolds, nothing nests, and
    no value is guessed to be a number, a date or a truth value before its key says what it must be.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import MappingStartEvent, NodeEvent, ScalarEvent

    try:
        raw = file.read_bytes()
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"settings file {file} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"settings file {file} cannot be read as UTF-8 text: {error}") from None
    if len(raw) > _MAX_BYTES:
        raise InputError(f"settings file {file} has {len(raw)} bytes, more than the {_MAX_BYTES} allowed")
    lines: dict[str, int] = {}
    inside, key = False, ""
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            if not isinstance(event, NodeEvent):
                continue
            line = event.start_mark.line + 1
            where = f"{file}:{line}"
            plain = event.anchor is None and getattr(event, "tag", None) is None
            if plain and not inside and isinstance(event, MappingStartEvent):
                inside = True
            elif not (plain and inside and isinstance(event, ScalarEvent)):  # an alias bears an anchor, too
                raise InputError(f"{where}: {_FORM}, without lists, tags or aliases")
            elif key:
                yield key, event.value, f"{where}: {key}"
                key = ""
            elif event.value not in _PARSERS:
                raise InputError(f"{where}: {event.value!r} is not a setting{nearest(event.value, _PARSERS)}")
            elif event.value in lines:
                raise InputError(f"{where}: {event.value!r} stands twice, first in line {lines[event.value]}")
            else:
                key = event.value
                lines[key] = line
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or "not YAML"
        raise InputError(f"{place}: {_FORM}: {problem}") from None


def _value(key: str, text: str, where: str) -> Any:
    try:
        return _PARSERS[key](text.strip())
    except ValueError:
        raise InputError(f"{where} is {text!r}, but must be {_RIGHT[key]}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _text(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _collection(text: str) -> str:
    if not _COLLECTION.fullmatch(text):
        raise ValueError(text)
    return text


def _top_k(text: str) -> int:
    if not 1 <= int(text) <= 1000:
        raise ValueError(text)
    return int(text)


def _min_score(text: str) -> float:
    if not -1 <= float(text) <= 1:
        raise ValueError(text)
    return float(text)


def _host(text: str) -> str:
    ollama_url(text)
    return text


_PARSERS: dict[str, Callable[[str], Any]] = {
    "chroma_path": _text,
    "collection": _collection,
    "embedding_model": _text,
    "top_k": _top_k,
    "min_score": _min_score,
    "ollama_host": _host,
}
_RIGHT = {
    "chroma_path": "a folder",
    "collection": "3 to 160 of the signs a-z A-Z 0-9 . _ -, the first and the last a letter or digit",
    "embedding_model": "the name of an embedding model",
    "top_k": "a whole number from 1 to 1000",
    "min_score": "a cosine, so a number from -1 to 1",
    "ollama_host": "an address",
}
