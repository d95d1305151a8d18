"""Retrieval quality: what an embedder finds in a store of memories, with no language model in between."""
