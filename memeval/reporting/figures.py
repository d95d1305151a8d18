"""Every figure memeval draws, by name. They take tidy numbers, read no files and change no settings."""

from memeval.reporting.figures_blame import blamed
from memeval.reporting.figures_designs import designs_beyond, designs_cost, designs_obeyed, designs_passed
from memeval.reporting.figures_factors import factors
from memeval.reporting.figures_ladder import ask_gaps, ask_strength, phantoms_by_rung, remembered
from memeval.reporting.figures_retrieval import retrieval_grid, retrieval_intervals, score_histogram
from memeval.reporting.figures_tiles import intent_matrix, passed
from memeval.reporting.figures_tools import decoys, headline, order_effect, phantom_saves, stages

__all__ = [
    "ask_gaps",
    "ask_strength",
    "blamed",
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
    "phantoms_by_rung",
    "remembered",
    "retrieval_grid",
    "retrieval_intervals",
    "score_histogram",
    "stages",
]
