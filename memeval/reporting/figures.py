"""Every figure memeval draws, by name. They take tidy numbers, read no files and change no settings."""

from memeval.reporting.figures_designs import designs_beyond, designs_cost, designs_obeyed, designs_passed
from memeval.reporting.figures_factors import factors
from memeval.reporting.figures_retrieval import retrieval_grid, retrieval_intervals, score_histogram
from memeval.reporting.figures_tiles import intent_matrix, passed
from memeval.reporting.figures_tools import decoys, headline, order_effect, phantom_saves, stages

__all__ = [
    "decoys",
    "designs_beyond",
    "designs_cost",
    "designs_obeyed",
    "designs_passed",
    "factors",
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
