"""memory.yaml and the environment."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from memeval.errors import InputError
from memeval.settings import _PARSERS, Settings, load_settings, ollama_url


def written(folder: Path, text: str) -> Path:
    file = folder / "memory.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_defaults_are_the_authors() -> None:
    assert load_settings(env={}) == Settings(
        chroma_path=".chroma", collection="local2.memory", embedding_model="nomic-embed-text", top_k=5,
        min_score=0.3, ollama_host="",
    )  # fmt: skip
    assert set(_PARSERS) == {field.name for field in fields(Settings)}


def test_the_authors_own_file_is_read(tmp_path: Path) -> None:
    text = """chroma_path: "memories"
collection: "local2.memory"
embedding_model: "nomic-embed-text"
top_k: 7
min_score: 0.45      # cosine similarity threshold
"""
    found = load_settings(written(tmp_path, text), env={})
    assert found == Settings(chroma_path="memories", top_k=7, min_score=0.45)


def test_the_working_folder_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(env={}).top_k == 5
    written(tmp_path, "top_k: 9")
    assert load_settings(env={}).top_k == 9


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufefftop_k: 5\n"])
def test_an_empty_file_changes_nothing(tmp_path: Path, text: str) -> None:
    assert load_settings(written(tmp_path, text), env={}) == Settings()


def test_values_are_read_as_their_key_needs_and_not_as_yaml_guesses(tmp_path: Path) -> None:
    found = load_settings(written(tmp_path, "embedding_model: no\nchroma_path: 12:30:45\n"), env={})
    assert (found.embedding_model, found.chroma_path) == ("no", "12:30:45")


def test_the_environment_overrides_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "top_k: 9\nollama_host: one\n")
    env = {
        "MEMEVAL_TOP_K": " 3 ",
        "OLLAMA_HOST": "two",
        "MEMEVAL_MIN_SCORE": "-1",
        "OTHER": "x",
        "MEMEVAL_CACHE": "y",
    }
    found = load_settings(file, env=env)
    assert (found.top_k, found.min_score, found.ollama_host) == (3, -1.0, "two")
    assert found.ollama_url == "http://two:11434"
    assert load_settings(file, env={**env, "MEMEVAL_OLLAMA_HOST": "three"}).ollama_host == "three"
    assert load_settings(file, env={"OLLAMA_HOST": ""}).ollama_host == "one"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("top_k: 5\ntopk: 5\n", r"memory.yaml:2: 'topk' is not a setting; did you mean 'top_k'\?"),
        ("\n\ntop_k: 5\n\ntop_k: 6\n", "memory.yaml:5: 'top_k' stands twice, first in line 3"),
        ("top_k: many", "memory.yaml:1: top_k is 'many', but must be a whole number from 1 to 1000"),
        ("top_k: 5.5", "top_k is '5.5', but must be a whole number"),
        ("top_k: 0", "top_k is '0'"),
        ("min_score: 30", "min_score is '30', but must be a cosine, so a number from -1 to 1"),
        ("min_score: nan", "min_score is 'nan'"),
        ("chroma_path:\n", "chroma_path is '', but must be a folder"),
        ("collection: my memories", "collection is 'my memories', but must be 3 to 160 of the signs"),
        (
            "ollama_host: ftp://x",
            "memory.yaml:1: ollama_host: 'ftp://x' is not an address of an Ollama server",
        ),
        ("top_k: [5]", "memory.yaml:1: settings are plain `key: value` lines, without lists"),
        ("top_k:\n  more: 5", "memory.yaml:2: settings are plain"),
        ("- top_k", "memory.yaml:1: settings are plain"),
        ("just text", "memory.yaml:1: settings are plain"),
        ("top_k: &a 5\n", "without lists, tags or aliases"),
        ("top_k: 5\ncollection: *a\n", "memory.yaml:2: .*aliases"),
        ("top_k: !!python/object:os.system 5", "without lists, tags or aliases"),
        ("a: &a [x, x]\nb: &b [*a, *a]\n", "memory.yaml:1: 'a' is not a setting"),
        ("top_k: 5\n---\ntop_k: 5\n", "memory.yaml:3: settings are plain"),
        ("top_k: 'open\n", "memory.yaml:.*settings are plain"),
        ("top_k: 5\n\tcollection: x\n", "memory.yaml:.*settings are plain"),
        ("{" * 3000, "settings are plain"),
        ("top_k: " + "[" * 30_000, "settings are plain"),
        ("# " + "x" * 70_000, "has 70002 bytes, more than the 65536 allowed"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_settings(written(tmp_path, text), env={})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml does not exist"):
        load_settings(tmp_path / "nowhere.yaml", env={})
    with pytest.raises(InputError, match="cannot be read as UTF-8"):
        load_settings(tmp_path, env={})
    (tmp_path / "latin").write_bytes(b"chroma_path: \xff")
    with pytest.raises(InputError, match="cannot be read as UTF-8"):
        load_settings(tmp_path / "latin", env={})


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"MEMEVAL_TOP_K": "x"}, "environment variable MEMEVAL_TOP_K is 'x', but must be a whole number"),
        ({"MEMEVAL_TOPK": "5"}, r"MEMEVAL_TOPK is not a setting; did you mean 'MEMEVAL_TOP_K'\?"),
        ({"MEMEVAL_COLLECTION": ""}, "environment variable MEMEVAL_COLLECTION is ''"),
        ({"OLLAMA_HOST": "http://x:y"}, "environment variable OLLAMA_HOST: 'http://x:y' is not an address"),
    ],
)
def test_what_is_wrong_in_the_environment_is_named(env: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_settings(env=env)


@pytest.mark.parametrize(
    ("name", "embedder"),
    [
        ("nomic-embed-text", "ollama:nomic-embed-text"),
        ("nomic-embed-text:v1.5", "ollama:nomic-embed-text:v1.5"),
        ("ollama:all-minilm", "ollama:all-minilm"),
        ("bundled:minilm", "bundled:minilm"),
        ("hash", "hash"),
        ("hashing-model", "ollama:hashing-model"),
        ("mine.py:Embedder", "mine.py:Embedder"),
    ],
)
def test_a_bare_embedding_model_is_one_of_ollamas(name: str, embedder: str) -> None:
    assert Settings(embedding_model=name).embedder == embedder


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("127.0.0.1:11434", "http://127.0.0.1:11434"),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("gpu-box", "http://gpu-box:11434"),
        ("http://gpu-box", "http://gpu-box:80"),
        ("https://gpu.example", "https://gpu.example:443"),
        ("HTTP://GPU-box:99/", "http://gpu-box:99"),
        ("https://gpu.example/ollama/", "https://gpu.example:443/ollama"),
        ("https://me:secret@gpu.example", "https://me:secret@gpu.example:443"),
        (' "127.0.0.1:1" ', "http://127.0.0.1:1"),
        ("[::1]:5000", "http://[::1]:5000"),
        ("::1", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
    ],
)
def test_every_form_of_ollama_host_becomes_a_url(host: str, url: str) -> None:
    assert ollama_url(host) == url


@pytest.mark.parametrize(
    "host", ["ftp://x", "http://x:port", "x:99999", "two words", "http://[::1", "x?y", "x#y"]
)
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="is not an address of an Ollama server"):
        ollama_url(host)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(InputError) as refused:
        ollama_url("http://me:secret@x:port")
    assert "secret" not in str(refused.value)


def test_without_a_host_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "gpu-box:5")
    assert ollama_url() == Settings().ollama_url == "http://gpu-box:5"
    assert Settings(ollama_host="other").ollama_url == "http://other:11434"
    monkeypatch.delenv("OLLAMA_HOST")
    assert ollama_url() == "http://127.0.0.1:11434"
