"""The benchmarks that can be imported: where each is from, what may be done with it, how to recognise it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark: its name, where it is from, what may be done with it, and how to recognise its items."""

    name: str
    title: str
    origin: str
    licence: str
    wants: str
    """What PATH must name."""
    marks: frozenset[str]
    """Fields that every item has."""
    how: str
    """How its questions become stories, in sentences for a reader of the imported folder."""


BENCHMARKS: Mapping[str, Benchmark] = {
    found.name: found
    for found in (
        Benchmark(
            name="bfcl", title="BFCL v4 memory", licence="Apache-2.0",
            origin="https://github.com/ShishirPatil/gorilla,"
            " berkeley-function-call-leaderboard/bfcl_eval/data",
            wants="the folder that holds BFCL_v4_memory.json, possible_answer/ and"
            " memory_prereq_conversation/",
            marks=frozenset({"id", "question", "scenario"}),
            how="A story tells the session that holds the answer, turn by turn, and asks in a new one; with"
            " --given the sessions stand in memory instead, and only the question is asked.",
        ),
        Benchmark(
            name="letta", title="Letta evals, core memory update", licence="Apache-2.0",
            origin="https://github.com/letta-ai/letta-evals,"
            " letta-leaderboard/core-memory-update-agent/datasets",
            wants="the file core_memory_update.jsonl",
            marks=frozenset({"input", "ground_truth", "agent_args"}),
            how="The ten facts of a group stand in memory, the user corrects one of them, and a question in"
            " the next session asks for what is right now. Retrieval asks for the facts as they were.",
        ),
        Benchmark(
            name="locomo", title="LoCoMo", licence="CC BY-NC 4.0 (no commercial use)",
            origin="https://github.com/snap-research/locomo, data/locomo10.json",
            wants="the file locomo10.json",
            marks=frozenset({"qa", "conversation"}),
            how="What both speakers said stands in memory, each line with speaker and day; the user is a"
            " third person who asks one question. Categories are numbers, as in the file: their names differ"
            " from paper to paper.",
        ),
        Benchmark(
            name="longmemeval", title="LongMemEval", licence="MIT",
            origin="https://github.com/xiaowu0162/LongMemEval",
            wants="a file such as longmemeval_s.json or longmemeval_oracle.json",
            marks=frozenset({"question_id", "question_type", "haystack_sessions"}),
            how="What the user and the assistant said stands in memory, each message with its day; one"
            " question is asked, with its date. All questions' evidence sessions make one corpus.",
        ),
    )
}  # fmt: skip
