"""memeval: which memory tool design should I give my local model, and does it really remember?

    import memeval
    run = memeval.run("scenarios/sweeps/demo.yaml")   # or go on with a run that was stopped
    run.trials, run.turns, run.calls, run.hits        # one frame a level
    memeval.report(run.folder)                        # notebooks and offline HTML

Names are loaded when first used: `import memeval` itself loads no chromadb, pandas or matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memeval import designs, embedding
    from memeval.designs import MemoryDesign
    from memeval.errors import HarnessError, InfrastructureError, InputError, MemevalError
    from memeval.evaluation.rescore import rescore
    from memeval.evaluation.results import Run, load
    from memeval.evaluation.runner import run
    from memeval.reporting.report import report
    from memeval.retrieval.sweep import run_retrieval
    from memeval.scenarios.loader import load_scenarios

__version__ = "0.1.0"

_HOMES = {
    "HarnessError": "memeval.errors",
    "InfrastructureError": "memeval.errors",
    "InputError": "memeval.errors",
    "MemevalError": "memeval.errors",
    "MemoryDesign": "memeval.designs",
    "Run": "memeval.evaluation.results",
    "designs": "memeval.designs",
    "embedding": "memeval.embedding",
    "load": "memeval.evaluation.results",
    "load_scenarios": "memeval.scenarios.loader",
    "report": "memeval.reporting.report",
    "rescore": "memeval.evaluation.rescore",
    "run": "memeval.evaluation.runner",
    "run_retrieval": "memeval.retrieval.sweep",
}

__all__ = [
    "HarnessError",
    "InfrastructureError",
    "InputError",
    "MemevalError",
    "MemoryDesign",
    "Run",
    "designs",
    "embedding",
    "load",
    "load_scenarios",
    "report",
    "rescore",
    "run",
    "run_retrieval",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'memeval' has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    return home if _HOMES[name] == f"memeval.{name}" else getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
