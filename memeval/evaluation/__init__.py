"""Trials and verdicts: a sweep becomes trials, a trial becomes rows, rows become frames."""
