"""Text to unit vectors: embedders by name, their prefixes, their cache."""

from memeval.embedding.base import Embedder, Encoder, PrefixMode, Purpose, Vectors
from memeval.embedding.cache import EmbeddingCache
from memeval.embedding.embedder import PrefixedEmbedder
from memeval.embedding.prefixes import PREFIX_MODES, Prefixes, UnsupportedPrefix, identical, lookup, same_as
from memeval.embedding.registry import embedder_names, open_embedder, register, unregister

__all__ = [
    "PREFIX_MODES",
    "Embedder",
    "EmbeddingCache",
    "Encoder",
    "PrefixMode",
    "PrefixedEmbedder",
    "Prefixes",
    "Purpose",
    "UnsupportedPrefix",
    "Vectors",
    "embedder_names",
    "identical",
    "lookup",
    "open_embedder",
    "register",
    "same_as",
    "unregister",
]
