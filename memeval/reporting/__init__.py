"""Figures, notebooks and offline HTML reports."""
