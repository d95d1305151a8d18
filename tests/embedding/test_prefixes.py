import pytest
from planted import QUESTIONS, STATEMENTS, PlantedEncoder, hit_at_1

from memeval.embedding.embedder import PrefixedEmbedder
from memeval.embedding.prefixes import PREFIX_MODES, REGISTRY, Prefixes, apply, identical, lookup, same_as

PASSAGES = "Represent this sentence for searching relevant passages: "
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@pytest.mark.parametrize(
    ("name", "family", "document", "query"),
    [
        ("nomic-embed-text", "nomic-embed-text", "search_document: ", "search_query: "),
        ("ollama:nomic-embed-text:v1.5", "nomic-embed-text", "search_document: ", "search_query: "),
        ("someone/nomic-embed-text:v1.5", "nomic-embed-text", "search_document: ", "search_query: "),
        (
            "hf.co/nomic-ai/Nomic-Embed-Text-v1.5-GGUF:Q4_0",
            "nomic-embed-text",
            "search_document: ",
            "search_query: ",
        ),
        ("nomic-embed-text-v2-moe", "nomic-embed-text-v2-moe", "search_document: ", "search_query: "),
        ("mxbai-embed-large:335m", "mxbai-embed-large", "", PASSAGES),
        ("snowflake-arctic-embed:22m", "snowflake-arctic-embed", "", PASSAGES),
        ("snowflake-arctic-embed:137m", "snowflake-arctic-embed-m-long", "", PASSAGES),
        ("snowflake-arctic-embed-m-v1.5", "snowflake-arctic-embed-m-v1.5", "", PASSAGES),
        ("snowflake-arctic-embed2:568m", "snowflake-arctic-embed2", "", "query: "),
        ("bge-m3", "bge-m3", "", ""),
        ("bge-large:335m", "bge-large", "", PASSAGES),
        ("ollama:all-minilm:22m", "all-minilm", "", ""),
        ("bundled:minilm", "all-minilm", "", ""),
        ("embeddinggemma:300m", "embeddinggemma", "title: none | text: ", "task: search result | query: "),
        ("qwen3-embedding:0.6b", "qwen3-embedding", "", TASK),
        ("granite-embedding:278m", "granite-embedding", "", ""),
        ("granite-embedding:311m", "granite-embedding-r2", "", ""),
        ("paraphrase-multilingual", "paraphrase-multilingual", "", ""),
        ("jeffh/intfloat-multilingual-e5-large:f16", "e5", "passage: ", "query: "),
        ("e5", "e5", "passage: ", "query: "),
        ("multilingual-e5-large-instruct", "multilingual-e5-large-instruct", "", TASK + " "),
    ],
)
def test_a_model_gets_exactly_the_strings_of_its_card(name, family, document, query):
    found = lookup(name)
    assert (found.family, found.document, found.query) == (family, document, query)
    assert found.registered
    assert found.card.startswith("https://")


@pytest.mark.parametrize(
    "name", ["ollama:my-own-model", "bge-large-zh", "e5-mistral-7b-instruct", "nomic-embed-code", ""]
)
def test_an_unknown_model_gets_no_prefix_and_says_so(name):
    found = lookup(name)
    assert (found.document, found.query, found.registered) == ("", "", False)


def test_every_family_is_found_by_its_own_name_or_is_a_tag_of_another():
    tagged = {"snowflake-arctic-embed-m-long", "granite-embedding-r2"}
    assert {row.family for row in REGISTRY if lookup(row.family) is not row} <= tagged


def test_the_six_modes_write_what_their_names_say():
    e5 = lookup("e5")
    assert {mode: apply(e5, mode) for mode in PREFIX_MODES} == {
        "card": ("passage: ", "query: "),
        "none": ("", ""),
        "swapped": ("query: ", "passage: "),
        "query-only": ("", "query: "),
        "document-only": ("passage: ", ""),
        "wrong": ("search_document: ", "search_query: "),
    }


@pytest.mark.parametrize("row", REGISTRY, ids=lambda row: row.family)
def test_wrong_prefixes_are_another_familys_and_differ_on_both_sides(row):
    wrong = apply(row, "wrong")
    assert wrong in {(other.document, other.query) for other in REGISTRY if other.family != row.family}
    assert wrong[0] not in ("", row.document)
    assert wrong[1] not in ("", row.query)
    assert wrong != apply(row, "swapped")


def test_a_symmetric_model_says_which_modes_are_identical_by_construction():
    minilm = lookup("all-minilm")
    assert minilm.symmetric
    assert [mode for mode in PREFIX_MODES if identical(minilm, mode)] == [
        "none",
        "swapped",
        "query-only",
        "document-only",
    ]
    assert not any(identical(lookup("nomic-embed-text"), mode) for mode in PREFIX_MODES)


def test_a_model_with_a_query_prefix_only_has_two_pairs_of_equal_modes():
    mxbai = lookup("mxbai-embed-large")
    assert identical(mxbai, "query-only")
    assert same_as(mxbai, "document-only") == "none"
    assert not identical(mxbai, "document-only")


def test_equal_prefixes_on_both_sides_are_symmetric_but_not_identical_to_none():
    both = Prefixes(family="both", document="x: ", query="x: ")
    assert both.symmetric
    assert identical(both, "swapped")
    assert not identical(both, "none")


def test_a_planted_asymmetric_encoder_retrieves_by_its_card_and_worse_by_every_other_mode():
    hits = {mode: hit_at_1(PrefixedEmbedder(PlantedEncoder(), mode)) for mode in PREFIX_MODES}
    assert hits["card"] == 1.0
    for mode in ("none", "swapped", "wrong"):
        assert hits[mode] < 0.6, hits
    # One side understood is better than none, and not as good as both.
    for mode in ("query-only", "document-only"):
        assert hits["none"] < hits[mode] < 1.0, hits


def test_the_encoder_is_sent_the_prefix_and_the_text_and_nothing_else():
    encoder = PlantedEncoder()
    embedder = PrefixedEmbedder(encoder, "swapped")
    embedder.embed(STATEMENTS[:1], "document")
    embedder.embed(QUESTIONS[:1], "query")
    assert encoder.sent == ["query: " + STATEMENTS[0], "passage: " + QUESTIONS[0]]
