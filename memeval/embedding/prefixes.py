"""What each model's card wants written before a document and before a query, and six ways to get it wrong.

A model that is not listed gets no prefix and `registered=False`, so that reports can say so; never a guess.
The strings are exact, trailing spaces included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from memeval.embedding.base import PrefixMode
from memeval.errors import InputError

PREFIX_MODES: tuple[PrefixMode, ...] = get_args(PrefixMode)

_MTEB = "https://github.com/embeddings-benchmark/mteb/tree/a905523d/mteb/models/model_implementations"
_HF = "https://huggingface.co/"
_PASSAGES = "Represent this sentence for searching relevant passages: "
_TASK = "Given a web search query, retrieve relevant passages that answer the query"


class UnsupportedPrefix(InputError):  # noqa: N818  a sweep lists such a cell as unsupported; nothing failed
    """This embedder cannot be put in this prefix mode: its engine writes the prefixes itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """One family's prefixes, and the facts of its card that decide what may be asked of it.

    `dims` are the native lengths of its sizes; `mrl` the shorter lengths it was trained to be cut to
    (Matryoshka), empty if none. `card_ctx` is the card's limit in tokens, `ollama_ctx` what a pulled model
    really takes, None where nobody measured it.
    """

    family: str
    document: str = ""
    query: str = ""
    registered: bool = True
    card: str = ""
    dims: tuple[int, ...] = ()
    card_ctx: int | None = None
    ollama_ctx: int | None = None
    mrl: Sequence[int] = ()
    source: str = _MTEB
    checked_on: str = "2026-08-22"

    @property
    def symmetric(self) -> bool:
        """Whether documents and queries are written alike, so that swapping changes nothing."""
        return self.document == self.query


_Row = tuple[re.Pattern[str], re.Pattern[str], Prefixes]


def _row(names: str, prefixes: Prefixes, tag: str = ".*") -> _Row:
    return re.compile(names), re.compile(tag), prefixes


# Matched in this order against the whole family name and the whole tag, so that relatives with other
# prefixes (bge-large-zh, e5-mistral) stay unregistered. Hugging Face spellings of the same model count too.
_ROWS = (
    _row(
        r"nomic-embed-text-v2(-moe)?",
        Prefixes(
            family="nomic-embed-text-v2-moe",
            document="search_document: ",
            query="search_query: ",
            card=_HF + "nomic-ai/nomic-embed-text-v2-moe",
            dims=(768,),
            card_ctx=512,
            mrl=(256,),
        ),
    ),
    _row(
        r"nomic-embed-text(-v1\.5)?",
        Prefixes(
            family="nomic-embed-text",
            document="search_document: ",
            query="search_query: ",
            card=_HF + "nomic-ai/nomic-embed-text-v1.5",
            dims=(768,),
            card_ctx=8192,
            ollama_ctx=2048,  # ollama #13054, #11214: the GGUF says 2048
            mrl=(512, 256, 128, 64),  # the card layer-normalises before cutting; a server's vectors cannot be
        ),
    ),
    _row(
        r"mxbai-embed-large(-v1)?",
        Prefixes(
            family="mxbai-embed-large",
            query=_PASSAGES,
            card=_HF + "mixedbread-ai/mxbai-embed-large-v1",
            dims=(1024,),
            card_ctx=512,
            ollama_ctx=512,
            mrl=(768, 512, 256, 128),
        ),
    ),
    _row(
        r"snowflake-arctic-embed2|snowflake-arctic-embed-l-v2\.0",
        Prefixes(
            family="snowflake-arctic-embed2",
            query="query: ",
            card=_HF + "Snowflake/snowflake-arctic-embed-l-v2.0",
            dims=(1024,),
            card_ctx=8192,
            ollama_ctx=8192,
            mrl=(256,),
        ),
    ),
    _row(
        r"snowflake-arctic-embed-m-v1\.5",
        Prefixes(
            family="snowflake-arctic-embed-m-v1.5",
            query=_PASSAGES,
            card=_HF + "Snowflake/snowflake-arctic-embed-m-v1.5",
            dims=(768,),
            card_ctx=512,
            mrl=(256,),
        ),
    ),
    *(
        _row(
            names,
            Prefixes(
                family="snowflake-arctic-embed-m-long",
                query=_PASSAGES,
                card=_HF + "Snowflake/snowflake-arctic-embed-m-long",
                dims=(768,),
                card_ctx=2048,
                ollama_ctx=2048,  # ollama #7741
            ),
            tag,
        )
        for names, tag in (
            ("snowflake-arctic-embed-m-long", ".*"),
            ("snowflake-arctic-embed", "(137m|m-long).*"),
        )
    ),
    _row(
        r"snowflake-arctic-embed(-xs|-s|-m|-l)?",
        Prefixes(
            family="snowflake-arctic-embed",
            query=_PASSAGES,
            card=_HF + "Snowflake/snowflake-arctic-embed-l",
            dims=(384, 768, 1024),
            card_ctx=512,
            ollama_ctx=512,
        ),
    ),
    _row(
        r"bge-m3",
        Prefixes(
            family="bge-m3",
            card=_HF + "BAAI/bge-m3",
            dims=(1024,),
            card_ctx=8192,
            ollama_ctx=2048,  # ollama #14259: declares 8192, but num_batch cuts at 2048 unless it is sent
        ),
    ),
    _row(
        r"bge-large(-en(-v1\.5)?)?",
        Prefixes(
            family="bge-large",
            query=_PASSAGES,
            card=_HF + "BAAI/bge-large-en-v1.5",
            dims=(1024,),
            card_ctx=512,
        ),
    ),
    _row(
        r"all-minilm(-l6(-v2)?)?|minilm",
        Prefixes(
            family="all-minilm",
            card=_HF + "sentence-transformers/all-MiniLM-L6-v2",
            dims=(384,),
            card_ctx=256,
            ollama_ctx=256,  # ollama #14186; a GGUF made from the safetensors takes 512 (measured, v0.24.0)
        ),
    ),
    _row(
        r"embeddinggemma(-300m)?",
        Prefixes(
            family="embeddinggemma",
            document="title: none | text: ",
            query="task: search result | query: ",
            card=_HF + "google/embeddinggemma-300m",
            dims=(768,),
            card_ctx=2048,
            ollama_ctx=2048,
            mrl=(512, 256, 128),
        ),
    ),
    _row(
        r"qwen3-embedding(-(0\.6|4|8)b)?",
        Prefixes(
            family="qwen3-embedding",
            query=f"Instruct: {_TASK}\nQuery:",  # no space after "Query:", unlike E5's instruct model
            card=_HF + "Qwen/Qwen3-Embedding-0.6B",
            dims=(1024, 2560, 4096),
            card_ctx=32768,
            mrl=range(32, 4096),
        ),
    ),
    *(
        _row(
            names,
            Prefixes(
                family="granite-embedding-r2",
                card=_HF + "ibm-granite/granite-embedding-311m-multilingual-r2",
                dims=(768,),
                card_ctx=32768,
                mrl=(512, 384, 256, 128),
            ),
            tag,
        )
        for names, tag in (("granite-embedding-311m-multilingual-r2", ".*"), ("granite-embedding", "311m.*"))
    ),
    _row(
        r"granite-embedding(-30m-english|-278m-multilingual)?",
        Prefixes(
            family="granite-embedding",
            card=_HF + "ibm-granite/granite-embedding-278m-multilingual",
            dims=(384, 768),
            card_ctx=512,
            ollama_ctx=512,
        ),
    ),
    _row(
        r"paraphrase-multilingual(-mpnet-base-v2)?",
        Prefixes(
            family="paraphrase-multilingual",
            card=_HF + "sentence-transformers/paraphrase-multilingual-mpnet-base-v2",
            dims=(768,),
            card_ctx=512,
        ),
    ),
    _row(
        r"(intfloat-)?multilingual-e5-large-instruct",
        Prefixes(
            family="multilingual-e5-large-instruct",
            query=f"Instruct: {_TASK}\nQuery: ",
            card=_HF + "intfloat/multilingual-e5-large-instruct",
            dims=(1024,),
            card_ctx=512,
        ),
    ),
    _row(
        r"(intfloat-)?(e5|(multilingual-)?e5-(small|base|large)(-v2)?)",
        Prefixes(
            family="e5",
            document="passage: ",
            query="query: ",
            card=_HF + "intfloat/multilingual-e5-small",
            dims=(384, 768, 1024),
            card_ctx=512,
        ),
    ),
)

REGISTRY: tuple[Prefixes, ...] = tuple({row.family: row for _, _, row in _ROWS}.values())
"""Every family there is, once, in the order they are matched."""


def lookup(name: str) -> Prefixes:
    """The prefixes of a model, from its name: `ollama:nomic-embed-text`, `someone/nomic-embed-text:v1.5`.

    The engine, the namespace, a `-gguf` ending and the case do not matter. A name that matches no row whole
    gets no prefix and `registered=False`.
    """
    bare = re.sub(r"^(ollama|bundled):", "", name.strip().lower()).rsplit("/", 1)[-1]
    family, _, tag = bare.partition(":")
    family = family.removesuffix("-gguf")
    for names, tags, prefixes in _ROWS:
        if names.fullmatch(family) and tags.fullmatch(tag):
            return prefixes
    return Prefixes(family=family, registered=False, source="", checked_on="")


def apply(prefixes: Prefixes, mode: PrefixMode) -> tuple[str, str]:
    """What a prefix mode writes before a document and before a query.

    `wrong` takes the pair of another family that differs on both sides and is nearest in length, so that
    what it measures is the words and not the tokens they cost.
    """
    document, query = prefixes.document, prefixes.query
    match mode:
        case "card":
            return document, query
        case "none":
            return "", ""
        case "swapped":
            return query, document
        case "query-only":
            return "", query
        case "document-only":
            return document, ""
        case "wrong":
            return _foreign(document, query)


def _foreign(document: str, query: str) -> tuple[str, str]:
    pairs = {(row.document, row.query) for row in REGISTRY}
    others = [pair for pair in pairs if all(pair) and pair[0] != document and pair[1] != query]

    def distance(pair: tuple[str, str]) -> tuple[int, tuple[str, str]]:
        return abs(len(pair[0]) - len(document)) + abs(len(pair[1]) - len(query)), pair

    return min(others, key=distance)


def same_as(prefixes: Prefixes, mode: PrefixMode) -> PrefixMode | None:
    """The earlier mode that sends the very same strings as this one, if there is one."""
    sent = apply(prefixes, mode)
    for earlier in PREFIX_MODES[: PREFIX_MODES.index(mode)]:
        if apply(prefixes, earlier) == sent:
            return earlier
    return None


def identical(prefixes: Prefixes, mode: PrefixMode) -> bool:
    """Whether a mode other than `card` sends the same strings as `card`: "identical by construction"."""
    return same_as(prefixes, mode) == "card"
