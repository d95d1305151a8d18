import numpy as np
import pytest
import stamina
from fake_embed_server import FakeOllama, vector

from memeval.embedding import open_embedder
from memeval.embedding.ollama import OllamaEncoder, base_url
from memeval.errors import InfrastructureError, InputError, TextTooLongError

LONG = "word " * 600


@pytest.fixture
def server():
    fake = FakeOllama()
    with stamina.set_testing(True, attempts=3):
        yield fake
    fake.close()


def opened(server, **options) -> OllamaEncoder:
    return OllamaEncoder("nomic-embed-text", server.url, **options)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1:11435", "http://127.0.0.1:11435"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu-box", "http://gpu-box:11434"),
        ("http://gpu-box:9999/", "http://gpu-box:9999"),
        ("https://models.example", "https://models.example:443"),
        ("http://gpu-box/ollama", "http://gpu-box:80/ollama"),
        ("[::1]:11434", "http://[::1]:11434"),
    ],
)
def test_a_host_is_read_as_ollama_itself_reads_it(given, url, monkeypatch):
    assert base_url(given) == url
    monkeypatch.setenv("OLLAMA_HOST", given)
    assert base_url() == url


def test_without_a_host_the_default_is_ollamas(monkeypatch):
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    assert base_url() == "http://127.0.0.1:11434"


@pytest.mark.parametrize("given", ["http://box:port", "ftp://box", "http://"])
def test_a_host_that_is_no_address_is_refused(given):
    with pytest.raises(InputError, match="http://HOST:11434"):
        base_url(given)


def test_digest_dimension_and_context_come_from_the_server(server):
    encoder = opened(server)
    assert (encoder.name, encoder.digest, encoder.dim, encoder.num_ctx) == (
        "ollama:nomic-embed-text",
        "abc",
        4,
        512,
    )
    assert server.embeds() == []  # opening a model loads nothing


def test_every_request_pins_truncation_and_context(server):
    server.context_length = 32768
    opened(server).encode(["tea"])
    (body,) = server.embeds()
    assert body == {
        "model": "nomic-embed-text",
        "input": ["tea"],
        "truncate": False,
        "options": {"num_ctx": 8192, "num_batch": 8192},
    }


def test_the_prefixes_of_the_card_are_sent_and_a_second_run_sends_nothing(server, tmp_path):
    from memeval.embedding import EmbeddingCache

    cache = EmbeddingCache(tmp_path / "vectors.sqlite")
    embedder = open_embedder("ollama:nomic-embed-text", cache=cache, host=server.url)
    embedder.embed(["tea"], "document")
    embedder.embed(["tea?"], "query")
    assert [body["input"] for body in server.embeds()] == [["search_document: tea"], ["search_query: tea?"]]
    again = open_embedder("ollama:nomic-embed-text", cache=cache, host=server.url)
    again.embed(["tea"], "document")
    assert (again.encoded, len(server.embeds())) == (0, 2)
    assert embedder.registered


def test_texts_go_in_batches_of_eight_once_a_batch_was_seen_to_agree(server):
    texts = [f"text {n}" + "a" * n for n in range(20)]
    rows = opened(server).encode(texts)
    assert np.array_equal(rows, np.array([vector(text) for text in texts], dtype=np.float32))
    assert [len(body["input"]) for body in server.embeds()] == [8, *[1] * 8, 8, 4]


def test_a_server_whose_batches_disagree_is_asked_one_by_one(server):
    def embed(body):
        status, reply = server.well(body)
        if len(body["input"]) > 1:
            reply["embeddings"].reverse()
        return status, reply

    server.embed = embed
    texts = [f"text {n}" + "a" * n for n in range(12)]
    rows = opened(server).encode(texts)
    assert np.array_equal(rows, np.array([vector(text) for text in texts], dtype=np.float32))
    assert [len(body["input"]) for body in server.embeds()] == [8, *[1] * 12]


def test_an_empty_text_is_refused_before_anything_is_sent(server):
    encoder = opened(server)
    with pytest.raises(InputError, match="text 2 of 2 is empty"):
        encoder.encode(["a", ""])
    assert encoder.encode([]).shape == (0, 4)
    assert server.embeds() == []


def test_a_missing_model_is_answered_with_the_line_that_gets_it(server):
    with pytest.raises(
        InputError, match=r"did you mean 'nomic-embed-text:latest'.*: ollama pull nomic-embed-txt$"
    ):
        OllamaEncoder("nomic-embed-txt", server.url)


def test_a_model_removed_while_running_is_missing_too(server):
    encoder = opened(server)
    server.embed = lambda body: (404, {"error": 'model "nomic-embed-text" not found, try pulling it first'})
    with pytest.raises(InputError, match=r"ollama pull nomic-embed-text$"):
        encoder.encode(["tea"])


def test_a_chat_model_is_refused_although_the_server_would_give_vectors(server):
    server.capabilities = ["completion", "tools"]
    with pytest.raises(InputError, match=r"no embedding model \(it can do: completion, tools\)"):
        opened(server)


def test_a_server_that_is_down_is_named_with_the_way_to_start_it(server):
    server.close()
    with pytest.raises(InfrastructureError, match=f"at {server.url} .*ollama serve") as caught:
        opened(server)
    assert caught.value.kind == "server_down"
    assert caught.value.exit_code == 4


def test_a_slow_server_is_a_timeout(server):
    encoder = opened(server, timeout=0.3)
    server.embed = lambda body: (server.release.wait(20), server.well(body))[1]
    with pytest.raises(InfrastructureError, match=r"did not answer /api/embed .* within 0\.3 s") as caught:
        encoder.encode(["tea"])
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    "reply",
    [
        b"<html>" + b"x" * 500,
        b"",
        [1, 2],
        {"embeddings": []},
        {"embeddings": [1.0]},
        {"embeddings": "none"},
        {"error": "out of memory"},
    ],
)
def test_garbage_is_shown_by_its_first_200_bytes(server, reply):
    encoder = opened(server)
    server.embed = lambda body: (200, reply)
    with pytest.raises(InfrastructureError) as caught:
        encoder.encode(["tea"])
    assert caught.value.kind == "bad_response"
    assert "x" * 194 in str(caught.value) or not isinstance(reply, bytes) or not reply
    assert "x" * 195 not in str(caught.value)


@pytest.mark.parametrize("row", [[1.0, 2.0], [0.0] * 4, ["a"] * 4, [1.0, None, 1.0, 1.0]])
def test_a_vector_that_is_no_vector_is_an_embedding_fault(server, row):
    encoder = opened(server)
    server.embed = lambda body: (200, {"embeddings": [row] * len(body["input"])})
    with pytest.raises(InfrastructureError, match="ollama:nomic-embed-text") as caught:
        encoder.encode(["tea"])
    assert caught.value.kind == "embedding"


def test_a_text_beyond_the_context_is_named_within_its_batch(server):
    def embed(body):
        if any(len(text) > 1000 for text in body["input"]):
            return 400, {"error": "the input length exceeds the context length"}
        return server.well(body)

    server.embed = embed
    encoder = opened(server)
    with pytest.raises(
        TextTooLongError, match=r"text 10 of 12 .* 512 tokens .*'word word .*\(3000 characters\)"
    ):
        encoder.encode([*["short"] * 9, LONG, *["short"] * 2])
    with pytest.raises(TextTooLongError, match="text 2 of 2"):
        encoder.encode(["short", LONG])


def test_a_text_the_model_answers_with_nan_is_named_within_its_batch(server):
    def embed(body):
        if "bad" in body["input"]:
            return 500, {"error": "failed to encode response: json: unsupported value: NaN"}
        return server.well(body)

    server.embed = embed
    with pytest.raises(InfrastructureError, match="text 3 of 3: 'bad'") as caught:
        opened(server).encode(["good", "fine", "bad"])
    assert caught.value.kind == "embedding"


def test_another_fault_of_the_server_keeps_its_words_and_is_not_tried_again(server):
    encoder = opened(server)
    server.embed = lambda body: (500, {"error": "llama runner process has terminated: finance"})
    with pytest.raises(InfrastructureError, match="HTTP 500: llama runner process has terminated") as caught:
        encoder.encode(["tea"])
    assert caught.value.kind == "server_error"
    assert len(server.embeds()) == 1


def test_a_busy_server_and_a_dropped_connection_are_tried_again(server):
    encoder = opened(server)
    replies = [(503, {"error": "server busy, please try again."}), (200, None)]
    server.embed = lambda body: replies.pop(0) if replies else server.well(body)
    assert encoder.encode(["tea"]).shape == (1, 4)
    assert len(server.embeds()) == 3


def test_a_server_that_stays_busy_is_said_to_be(server):
    encoder = opened(server)
    server.embed = lambda body: (503, {"error": "server busy, please try again."})
    with pytest.raises(InfrastructureError, match="not serving: server busy") as caught:
        encoder.encode(["tea"])
    assert caught.value.kind == "server_error"
    assert len(server.embeds()) == 3


@pytest.mark.parametrize("path", ["/api/tags", "/api/show"])
def test_another_program_on_the_port_is_not_taken_for_ollama(server, path):
    well = server.answer
    server.answer = lambda asked, body: (404, b"404 page not found") if asked == path else well(asked, body)
    with pytest.raises(InfrastructureError, match="page not found") as caught:
        opened(server)
    assert caught.value.kind == "bad_response"
