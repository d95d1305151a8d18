import inspect
import subprocess
import sys

import numpy as np
import pytest
from planted import NAME, QUESTIONS, STATEMENTS, PlantedEncoder, hit_at_1

from memeval.embedding import EmbeddingCache, embedder_names, identical, open_embedder, register, unregister
from memeval.embedding.registry import BUILT_IN
from memeval.errors import HarnessError, InfrastructureError, InputError

PREFIXES = {"document": "passage: ", "query": "query: "}


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


def broken(texts):
    table = {}
    return [table[text] for text in texts]


@pytest.fixture(autouse=True)
def own_names():
    yield
    for name in set(embedder_names()) - set(BUILT_IN):
        unregister(name)


def test_hash_opens_by_name_without_prefixes():
    embedder = open_embedder("hash", cache=None)
    assert (embedder.name, embedder.dim, embedder.registered, embedder.symmetric) == ("hash", 256, True, True)
    assert identical(embedder.prefixes, "swapped")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("hsah", "did you mean 'hash'"),
        ("bundled:minlm", "did you mean 'bundled:minilm'"),
        ("nomic-embed-text", "did you mean 'ollama:nomic-embed-text'"),
        ("ollama:", "no embedder 'ollama:'"),
        ("minee", "did you mean 'mine'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, hint):
    register("mine", lengths)
    with pytest.raises(InputError, match=hint):
        open_embedder(name)


def test_an_unknown_prefix_mode_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="did you mean 'swapped'"):
        open_embedder("hash", prefix="swaped")


def test_the_default_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("MEMEVAL_CACHE", str(tmp_path / "vectors.sqlite"))
    open_embedder("hash").embed(["tea"])
    again = open_embedder("hash")
    again.embed(["tea"])
    assert again.encoded == 0
    assert (tmp_path / "vectors.sqlite").is_file()


def test_a_function_of_ones_own_is_an_embedder_with_its_prefixes():
    engine = PlantedEncoder()
    register("mine", engine.encode, document_prefix="passage: ", query_prefix="query: ")
    assert embedder_names() == ["bundled:minilm", "hash", "mine"]
    assert hit_at_1(open_embedder("mine", cache=None)) == 1.0
    assert hit_at_1(open_embedder("mine", "swapped", cache=None)) < 0.6
    assert hit_at_1(open_embedder("mine", "wrong", cache=None)) < 0.6


def test_an_engine_that_writes_its_own_prefixes_is_told_the_purpose():
    engine = PlantedEncoder()
    register("mine", embed=lambda texts, purpose: engine.encode([PREFIXES[purpose] + text for text in texts]))
    assert hit_at_1(open_embedder("mine", cache=None)) == 1.0
    assert hit_at_1(open_embedder("mine", "swapped", cache=None)) < 0.6
    assert set(engine.sent) - {"passage: dimension", "query: dimension"} == {
        before + text for before in PREFIXES.values() for text in STATEMENTS + QUESTIONS
    }


@pytest.mark.parametrize("mode", ["none", "query-only", "document-only", "wrong"])
def test_such_an_engine_cannot_do_the_other_modes(mode):
    from memeval.embedding import UnsupportedPrefix

    register("mine", embed=lambda texts, purpose: lengths(texts))
    with pytest.raises(UnsupportedPrefix, match="card, swapped"):
        open_embedder("mine", mode)
    assert issubclass(UnsupportedPrefix, InputError)


def test_register_decorates_and_tells_the_two_kinds_apart_by_the_parameter_purpose():
    @register("plain", query_prefix="q: ")
    def plain(texts):
        return lengths(texts)

    @register("aware")
    def aware(texts, purpose):
        return [[len(text), float(purpose == "query")] for text in texts]

    assert plain(["abc"]) == [[3, 1.0]]
    assert open_embedder("plain", cache=None).embed(["ab"], "query")[0] == pytest.approx(
        [5 / 26**0.5, 1 / 26**0.5]
    )
    assert open_embedder("aware", cache=None).embed(["a"], "query")[0] == pytest.approx([0.5**0.5] * 2)
    assert open_embedder("aware", cache=None).embed(["a"], "document")[0] == pytest.approx([1, 0])


def test_an_exception_in_ones_own_function_names_function_file_line_and_error():
    register("mine", broken)
    line = inspect.getsourcelines(broken)[1] + 2
    with pytest.raises(HarnessError) as caught:
        open_embedder("mine", cache=None)
    said = str(caught.value)
    assert "'mine' (broken, " in said
    assert f"test_embedding_registry.py, line {line}) raised KeyError: 'dimension'" in said
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda texts: [1.0] * len(texts), r"shape \(1,\) for one text"),
        (lambda texts: [[1.0, 2.0]], "returned 1 vectors for 2 texts"),
        (lambda texts: [[float("nan"), 1.0]] * len(texts), "not finite for text 1 of 2: 'a'"),
        (lambda texts: [[1e300, 1.0]] * len(texts), "not finite for text 1 of 2: 'a'"),
        (lambda texts: [[0.0, 0.0]] * len(texts), "zero vector for text 1 of 2: 'a'"),
        (lambda texts: None, "NoneType|shape"),
        (lambda texts: [["x"]] * len(texts), "returned list, not one vector"),
    ],
)
def test_what_ones_own_function_returns_amiss_is_a_bug_of_its_own(function, said):
    register("mine", function)
    with pytest.raises(HarnessError, match=said):
        open_embedder("mine", cache=None).embed(["a", "b"])


def test_a_function_may_say_itself_that_its_server_is_down():
    def remote(texts):
        raise InfrastructureError("my server is down", kind="server_down")

    register("mine", remote)
    with pytest.raises(InfrastructureError, match="my server is down"):
        open_embedder("mine")


def test_an_edited_function_is_a_new_embedder_and_a_given_digest_stays(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    prints = []
    for number in (1, 2):
        (tmp_path / f"edited{number}.py").write_text(
            f"def f(texts):\n    return [[{number}.0, 1.0] for _ in texts]\n"
        )
        module = __import__(f"edited{number}")
        for digest in (None, "v1"):
            register("mine", module.f, digest=digest)
            prints.append(open_embedder("mine", cache=None).fingerprint)
    source_one, given_one, source_two, given_two = prints
    assert source_one != source_two
    assert given_one == given_two


def test_two_functions_given_one_digest_share_no_cached_vector(tmp_path):
    cache = EmbeddingCache(tmp_path / "vectors.sqlite")
    register("a", lambda texts: [[1.0, 0.0]] * len(texts), digest="same")
    register("b", lambda texts: [[0.0, 1.0]] * len(texts), digest="same")
    assert open_embedder("a", cache=cache).embed(["x"]).tolist() == [[1, 0]]
    assert open_embedder("b", cache=cache).embed(["x"]).tolist() == [[0, 1]]
    cache.close()


def test_a_callable_object_and_a_builtin_have_a_digest_too():
    class Engine:
        def __call__(self, texts):
            raise ValueError("no")

    register("mine", Engine())
    with pytest.raises(
        HarnessError, match=r"\(Engine, .*test_embedding_registry.py, line \d+\) raised ValueError: no"
    ):
        open_embedder("mine")
    register("mine", len)
    with pytest.raises(HarnessError, match="shape"):
        open_embedder("mine")


@pytest.mark.parametrize("name", ["hash", "ollama:mine", "bundled:mine", ""])
def test_the_programs_own_names_cannot_be_taken(name):
    with pytest.raises(InputError, match="not free"):
        register(name, lengths)


def test_register_refuses_what_contradicts_itself():
    with pytest.raises(InputError, match="both encode and embed"):
        register("mine", lengths, embed=lambda texts, purpose: lengths(texts))
    with pytest.raises(InputError, match="takes no prefixes with embed"):
        register("mine", embed=lambda texts, purpose: lengths(texts), query_prefix="query: ")
    with pytest.raises(InputError, match="needs a function, not str"):
        register("mine", "lengths")
    with pytest.raises(InputError, match="no embedder of your own"):
        unregister("mine")


def test_a_registered_name_wins_over_nothing_and_can_be_replaced():
    register("mine", lengths)
    register("mine", lambda texts: np.ones((len(texts), 3)))
    assert open_embedder("mine", cache=None).dim == 3
    assert NAME not in embedder_names()


def test_importing_the_room_loads_no_heavy_library():
    heavy = ("httpx", "scipy", "tokenizers", "safetensors", "stamina", "chromadb", "pandas", "ollama")
    script = f"import memeval.embedding, sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
