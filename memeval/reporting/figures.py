"""Every figure memeval draws, by name. They take tidy numbers, read no files and change no settings."""

from memeval.reporting.figures_retrieval import retrieval_grid, retrieval_intervals, score_histogram
from memeval.reporting.figures_tools import (
    decoys,
    headline,
    intent_matrix,
    order_effect,
    passed,
    phantom_saves,
    stages,
)

__all__ = [
    "decoys",
    "headline",
    "intent_matrix",
    "order_effect",
    "passed",
    "phantom_saves",
    "retrieval_grid",
    "retrieval_intervals",
    "score_histogram",
    "stages",
]
