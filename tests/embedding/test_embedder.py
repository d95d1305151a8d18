import threading

import numpy as np
import pytest
from planted import STATEMENTS, PlantedEncoder

from memeval.embedding.cache import EmbeddingCache
from memeval.embedding.embedder import PrefixedEmbedder
from memeval.embedding.hashing import HashEncoder
from memeval.errors import InfrastructureError, InputError


class Answers:
    """An encoder that returns what it is told to."""

    name = "ollama:nomic-embed-text"
    digest = "d"

    def __init__(self, rows, dim=4):
        self.rows = rows
        self.dim = dim

    def encode(self, texts):
        return self.rows(texts) if callable(self.rows) else self.rows


@pytest.fixture
def cache(tmp_path):
    kept = EmbeddingCache(tmp_path / "vectors.sqlite")
    yield kept
    kept.close()


def test_vectors_come_in_order_as_unit_float32():
    vectors = PrefixedEmbedder(PlantedEncoder()).embed(STATEMENTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (40, 48)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    one = PrefixedEmbedder(PlantedEncoder()).embed([STATEMENTS[7]])
    assert np.array_equal(one[0], vectors[7])


def test_no_texts_give_zero_rows():
    assert PrefixedEmbedder(HashEncoder()).embed([]).shape == (0, 256)


def test_a_blank_text_is_refused_by_its_place():
    with pytest.raises(InputError, match="text 2 of 2 for hash is blank"):
        PrefixedEmbedder(HashEncoder()).embed(["a", " \n"])


def test_one_text_instead_of_a_list_is_refused():
    with pytest.raises(InputError, match="takes a list of texts"):
        PrefixedEmbedder(HashEncoder()).embed("tea")


def test_half_a_surrogate_pair_is_embedded_as_a_replacement_sign():
    embedder = PrefixedEmbedder(PlantedEncoder())
    embedder.embed(["broken \ud83d end"])
    assert embedder.encoder.sent[0].encode() == "passage: broken \ufffd\ufffd\ufffd end".encode()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.ones((1, 4)), "returned 1 vectors for 2 texts"),
        (np.ones((2, 3)), "vectors of 3 numbers, not 4"),
        (np.ones(4), r"array of shape \(4,\)"),
        ([[1.0, 2.0], [1.0]], "did not return 2 vectors of one length"),
        (np.array([[1.0, 0, 0, 0], [np.nan, 0, 0, 0]]), "not finite for text 2 of 2: 'green tea'"),
        (np.array([[np.inf, 0, 0, 0], [1, 0, 0, 0]]), "not finite for text 1 of 2: 'black tea'"),
        (np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]]), "zero vector for text 2 of 2: 'green tea'"),
    ],
)
def test_what_an_encoder_returns_amiss_is_named_with_model_and_text(rows, said):
    with pytest.raises(InfrastructureError, match=said) as caught:
        PrefixedEmbedder(Answers(rows)).embed(["black tea", "green tea"])
    assert caught.value.kind == "embedding"
    assert "ollama:nomic-embed-text" in str(caught.value)


def test_dims_cut_and_normalise_anew_where_the_card_allows_it():
    raw = np.arange(1, 769, dtype=np.float32)[None, :]
    embedder = PrefixedEmbedder(Answers(raw, dim=768), dims=256)
    assert embedder.dim == 256
    expected = raw[0, :256] / np.linalg.norm(raw[0, :256])
    assert np.allclose(embedder.embed(["x"])[0], expected)


def test_a_vector_that_is_zero_once_cut_is_refused():
    raw = np.zeros((1, 768), dtype=np.float32)
    raw[0, 700] = 1
    with pytest.raises(InfrastructureError, match="only zeros in the first 256"):
        PrefixedEmbedder(Answers(raw, dim=768), dims=256).embed(["x"])


def test_dims_the_card_does_not_name_are_refused_with_those_it_does():
    with pytest.raises(InputError, match="512, 256, 128, 64"):
        PrefixedEmbedder(Answers(None, dim=768), dims=300)
    with pytest.raises(InputError, match="names no shorter ones"):
        PrefixedEmbedder(HashEncoder(), dims=64)
    assert PrefixedEmbedder(HashEncoder(), dims=256).dim == 256


def test_the_fingerprint_changes_with_digest_prefixes_and_dims_and_only_then():
    def fingerprint(mode="card", dims=None, digest="d"):
        encoder = Answers(None, dim=768)
        encoder.digest = digest
        return PrefixedEmbedder(encoder, mode, dims).fingerprint

    others = [fingerprint("swapped"), fingerprint("none"), fingerprint(dims=256), fingerprint(digest="e")]
    assert len({fingerprint(), *others}) == 5
    assert fingerprint() == fingerprint(dims=768)


def test_a_symmetric_models_equal_modes_share_a_fingerprint():
    modes = ("card", "none", "swapped", "query-only")
    assert len({PrefixedEmbedder(HashEncoder(), mode).fingerprint for mode in modes}) == 1


def test_each_distinct_text_is_encoded_once_and_a_second_run_encodes_nothing(cache):
    first = PrefixedEmbedder(PlantedEncoder(), cache=cache)
    once = first.embed([*STATEMENTS, *STATEMENTS])
    assert first.encoded == 40
    second = PrefixedEmbedder(PlantedEncoder(), cache=cache)
    again = second.embed([*STATEMENTS, *STATEMENTS])
    assert second.encoded == 0
    assert np.array_equal(once, again)


def test_modes_that_send_the_same_document_share_its_vectors(cache):
    PrefixedEmbedder(PlantedEncoder(), "none", cache=cache).embed(STATEMENTS)
    bare = PrefixedEmbedder(PlantedEncoder(), "query-only", cache=cache)
    bare.embed(STATEMENTS, "document")
    assert bare.encoded == 0
    bare.embed(STATEMENTS, "query")
    assert bare.encoded == 40


def test_another_digest_or_dims_never_reads_the_same_vectors(cache):
    raw = np.arange(1, 769, dtype=np.float32)[None, :]
    for dims, digest in ((None, "d"), (256, "d"), (None, "e")):
        encoder = Answers(raw, dim=768)
        encoder.digest = digest
        embedder = PrefixedEmbedder(encoder, dims=dims, cache=cache)
        embedder.embed(["x"])
        assert embedder.encoded == 1


def test_nothing_bad_is_ever_cached(cache):
    with pytest.raises(InfrastructureError):
        PrefixedEmbedder(Answers(np.zeros((1, 4))), cache=cache).embed(["x"])
    assert cache.count() == 0


def test_threads_with_the_same_texts_encode_them_once(cache):
    embedder = PrefixedEmbedder(PlantedEncoder(), cache=cache)
    threads = [threading.Thread(target=embedder.embed, args=(STATEMENTS,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert embedder.encoded == 40
    assert cache.count() == 40


def test_hashing_is_the_same_everywhere_and_near_for_shared_words():
    tea, teas, car = PrefixedEmbedder(HashEncoder()).embed(
        ["I like green tea", "green tea, I LIKE", "Autobahn"]
    )
    assert tea @ teas > 0.6 > 0.3 > abs(tea @ car)
    assert np.flatnonzero(HashEncoder().encode(["ab"])[0]).tolist() == [18, 27, 139, 170]
    vectors = HashEncoder().encode(["!", "!!", "?!", " ", "ä", "日本語"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
