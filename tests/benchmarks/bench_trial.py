"""Harness CPU per trial: scripted model, one tool call, in-memory store, one durable row.

Prints what a trial costs apart from the model. Inspect AI was measured at 42 CPU ms on the same work.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evaluation"))

from stories import REMEMBER, SAVE, story

from memeval.designs import open_design
from memeval.embedding import open_embedder
from memeval.evaluation.results import RunWriter
from memeval.evaluation.trial import Trial, run_trial
from memeval.memory.inmemory import InMemoryStore
from memeval.models.base import Options
from memeval.models.scripted import ScriptedModel

TRIALS = 1000


def main() -> None:
    """Run the trials with and without the durable row."""
    tale, spec = story([REMEMBER]), open_design({"local2_single": {"write_path": "tool"}})
    embedder = open_embedder("hash", cache=None)
    model = ScriptedModel(lambda messages, tools: "Elixir." if messages[-1].role == "tool" else SAVE)
    with tempfile.TemporaryDirectory() as folder:
        writer = RunWriter(Path(folder))
        spent = {"trial": 0.0, "durable row": 0.0}
        for number in range(-20, TRIALS):
            trial = Trial(
                key=str(number), cell="c", scenario=tale, design=spec, calling="native", options=Options()
            )
            start = time.process_time()
            store = InMemoryStore("user", embedder)
            result = run_trial(trial, model, lambda user, store=store: store)  # type: ignore[misc]
            middle = time.process_time()
            writer.commit(result)
            if number >= 0:
                spent["trial"] += middle - start
                spent["durable row"] += time.process_time() - middle
        writer.close()
    for name, seconds in spent.items():
        print(f"{name:12} {1000 * seconds / TRIALS:.3f} CPU ms")
    print(f"{'both':12} {1000 * sum(spent.values()) / TRIALS:.3f} CPU ms a trial, {TRIALS} trials")


if __name__ == "__main__":
    main()
