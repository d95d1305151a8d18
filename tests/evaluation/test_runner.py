"""A run that is stopped anywhere goes on and ends with exactly one counted row a trial."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from runs import scripted, sweep

import memeval
from memeval.designs import MemoryDesign, register
from memeval.errors import HarnessError, InfrastructureError, InputError
from memeval.evaluation.plan import BLOCK, opened
from memeval.evaluation.results import MANIFEST, ROWS, Run, load, read_manifest, read_rows
from memeval.evaluation.sweep import read_sweep
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

PROGRAM = Path(__file__).with_name("runs.py")
KILLS = [f"{what}:{n}" for what, most in (("request", 30), ("write", 15))
         for n in random.Random(what).sample(range(1, most), 10)]  # fmt: skip


@pytest.fixture(autouse=True)
def _model() -> None:
    register_model("scripted:test", lambda: ScriptedModel(scripted))


def counted_keys(folder: Path) -> Counter[str]:
    return Counter(row["trial_key"] for row in read_rows(folder) if row["table"] == "trial")


@pytest.mark.parametrize("kill", KILLS)
def test_a_run_killed_anywhere_resumes_and_counts_every_trial_once(tmp_path: Path, kill: str) -> None:
    out = tmp_path / "run"
    dead = subprocess.run([sys.executable, PROGRAM, tmp_path / "in", out, kill], check=False)
    assert dead.returncode == -signal.SIGKILL
    run = memeval.run(sweep(tmp_path / "in"), out)
    assert len(run.trials) == 8
    assert set(counted_keys(out).values()) == {1}
    assert run.trials["passed"].all()
    assert len(run.turns) == 16
    assert run.damaged == []
    assert len(run.manifest["starts"]) == 2 or kill == "request:1"


def test_a_finished_run_runs_nothing_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    memeval.run(sweep(tmp_path), out)
    before = (out / "rows.jsonl").read_bytes()
    register_model("scripted:test", lambda: ScriptedModel([]))
    memeval.run(sweep(tmp_path), out)
    assert (out / "rows.jsonl").read_bytes() == before


def test_rows_do_not_depend_on_where_a_run_was_stopped(tmp_path: Path) -> None:
    whole = memeval.run(sweep(tmp_path), tmp_path / "whole").trials
    subprocess.run([sys.executable, PROGRAM, tmp_path, tmp_path / "cut", "request:9"], check=False)
    cut = memeval.run(sweep(tmp_path), tmp_path / "cut").trials
    columns = ["trial_key", "cell", "scenario", "repeat", "seed", "order", "passed", "calls", "prompt_tokens"]
    assert whole[columns].sort_values("trial_key").equals(cut[columns].sort_values("trial_key")) or (
        whole[columns].sort_values("trial_key").to_dict("list")
        == cut[columns].sort_values("trial_key").to_dict("list")
    )


def failing(times: int) -> Iterator[bool]:
    yield from [True] * times
    while True:
        yield False


def test_an_invalid_trial_runs_again_as_a_new_attempt(tmp_path: Path) -> None:
    fails = failing(1)

    def once(messages: Any, tools: Any) -> Any:
        of_a_story = "remember" in messages[-1].content
        failed = of_a_story and next(fails)
        return InfrastructureError("slow", kind="timeout") if failed else scripted(messages, tools)

    register_model("scripted:test", lambda: ScriptedModel(once))
    first = memeval.run(sweep(tmp_path), tmp_path / "run").trials
    assert (first["outcome"] == "invalid").sum() == 1
    again = memeval.run(sweep(tmp_path), tmp_path / "run").trials
    assert (again["outcome"] == "ok").all()
    assert sorted(again["attempt"])[-1] == 2
    assert len(again) == 8


def test_a_dead_server_stops_the_run_and_is_no_row(tmp_path: Path) -> None:
    def dead(messages: Any, tools: Any) -> Any:
        return InfrastructureError("no server at http://127.0.0.1:1", kind="server_down")

    register_model("scripted:test", lambda: ScriptedModel(dead))
    with pytest.raises(InfrastructureError, match="the same command goes on from there") as caught:
        memeval.run(sweep(tmp_path), tmp_path / "run")
    assert caught.value.exit_code == 4
    assert counted_keys(tmp_path / "run") == Counter()


def test_a_server_that_only_fails_stops_the_run(tmp_path: Path) -> None:
    def bad(messages: Any, tools: Any) -> Any:
        of_a_story = "remember" in messages[-1].content
        return InfrastructureError("HTTP 500", kind="server_error") if of_a_story else "ok"

    register_model("scripted:test", lambda: ScriptedModel(bad))
    with pytest.raises(InfrastructureError):
        memeval.run(sweep(tmp_path), tmp_path / "run")
    assert len(counted_keys(tmp_path / "run")) == 2


def test_a_folder_of_another_sweep_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    memeval.run(sweep(tmp_path), tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="holds the run of sweep 'tiny', not of 'other'"):
        memeval.run({**sweep(tmp_path), "sweep": "other"}, tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.doc").touch()
    with pytest.raises(InputError, match="not empty and holds no run"):
        memeval.run(sweep(tmp_path), tmp_path / "run")


def test_what_changed_is_a_new_cell_and_never_mixed(tmp_path: Path) -> None:
    memeval.run(sweep(tmp_path), tmp_path / "run")
    run = memeval.run(sweep(tmp_path, options={"temperature": 0.1}), tmp_path / "run")
    assert len(run.trials) == 8
    assert len(counted_keys(tmp_path / "run")) == 16


def told(run: Run) -> set[tuple[str, int, int]]:
    return set(zip(run.trials["scenario"], run.trials["repeat"], run.trials["seed"], strict=True))


def retell(folder: Path, old: str, new: str) -> None:
    path = folder / "stories.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_trials_that_the_sweep_no_longer_plans_are_left_out_and_found_again(tmp_path: Path) -> None:
    out, given = tmp_path / "run", sweep(tmp_path)
    first = memeval.run(given, out)
    assert (len(first.trials), first.left_out) == (8, 0)

    seeded = memeval.run({**given, "seed": 1}, out)
    assert (len(seeded.trials), seeded.left_out, len(seeded.turns)) == (8, 8, 16)
    assert not told(seeded) & told(first)

    fewer = memeval.run({**given, "repeats": 1}, out)
    assert (len(fewer.trials), fewer.left_out, set(fewer.trials["repeat"])) == (4, 12, {0})

    retell(tmp_path, "Please remember my", "Please do remember that my")
    edited = memeval.run(given, out)
    assert (len(edited.trials), edited.left_out) == (8, 16)
    assert not set(edited.trials["trial_key"]) & set(first.trials["trial_key"])

    retell(tmp_path, "story-1", "story-9")
    renamed = memeval.run(given, out)
    assert set(renamed.trials["scenario"]) == set(renamed.manifest["scenarios"]) == {"story-0", "story-9"}
    assert (len(renamed.trials), renamed.left_out) == (8, 20)

    size = (out / ROWS).stat().st_size
    again = memeval.run(sweep(tmp_path), out)
    assert (told(again), again.left_out) == (told(first), 20)
    assert set(again.trials["trial_key"]) == set(first.trials["trial_key"])
    assert (out / ROWS).stat().st_size == size


def test_a_manifest_that_names_no_trials_counts_all_of_its_cells(tmp_path: Path) -> None:
    out = tmp_path / "run"
    memeval.run(sweep(tmp_path), out)
    memeval.run({**sweep(tmp_path), "seed": 1}, out)
    manifest = read_manifest(out)
    for cell in manifest["cells"]:
        del cell["trial_keys"]
    (out / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    run = load(out)
    assert (len(run.trials), run.left_out) == (16, 0)


def test_embedders_of_one_fingerprint_make_one_cell(tmp_path: Path) -> None:
    other = {"name": "hash", "prefix": "none"}
    run = memeval.run(sweep(tmp_path, embedders=["hash", other]), tmp_path / "run")
    assert (len(run.cells), set(run.cells["prefix"]), run.manifest["trials"]) == (2, {"card"}, 8)
    assert (len(run.trials), len(run.turns)) == (8, 16)
    assert set(counted_keys(tmp_path / "run").values()) == {1}
    parts = [{"embedders": ["hash"], "repeats": 1}, {"embedders": [other], "repeats": 2}]
    given = sweep(tmp_path, parts=parts)
    assert memeval.run(given, tmp_path / "parts").manifest["trials"] == 8


def test_a_folder_with_cells_and_trials_twice_counts_them_once(tmp_path: Path) -> None:
    out = tmp_path / "run"
    once = memeval.run(sweep(tmp_path), out)
    manifest = read_manifest(out)
    manifest["cells"] *= 2
    (out / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    (out / ROWS).write_bytes((out / ROWS).read_bytes() * 2)
    run = load(out)
    for name in ("cells", "trials", "turns", "calls", "hits"):
        assert len(getattr(run, name)) == len(getattr(once, name))
    assert run.left_out == 0


def test_a_trial_whose_row_was_damaged_is_a_new_attempt(tmp_path: Path) -> None:
    out = tmp_path / "run"
    once = memeval.run(sweep(tmp_path), out)
    lines = (out / ROWS).read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines[:-1]) if line.startswith(b'{"table": "trial"'))
    lines[last] = lines[last].replace(b"scenario", b"scenaria")
    (out / ROWS).write_bytes(b"".join(lines))
    run = memeval.run(sweep(tmp_path), out)
    assert run.damaged == [last + 1]
    assert (len(run.trials), len(run.turns), len(run.calls)) == (8, 16, len(once.calls))
    assert sorted(run.trials["attempt"]) == [1] * 7 + [2]


def test_all_cells_run_a_block_of_stories_before_the_next_one(tmp_path: Path) -> None:
    given, base = read_sweep(sweep(tmp_path, stories=BLOCK + 2))
    with opened(given, base) as plan:
        found = [(t.repeat, int(t.scenario.scenario[6:]) // BLOCK, c.row.cell) for c, t in plan.trials()]
        planned = Counter(trial.key for cell in plan.cells for trial in cell.trials)
        assert Counter(trial.key for _, trial in plan.trials()) == planned
    places = [place[:2] for place in found]
    assert places == sorted(places)
    assert Counter(places) == {(0, 0): 14, (0, 1): 4, (1, 0): 14, (1, 1): 4}
    # within a block a cell's stories come one after the other, for its prompt prefix is cached
    assert sum(one != other for one, other in pairwise(found)) == 7


def test_seeds_and_orders_are_the_same_for_every_design(tmp_path: Path) -> None:
    trials = memeval.run(sweep(tmp_path), tmp_path / "run").trials
    assert (trials.groupby(["scenario", "repeat"])["seed"].nunique() == 1).all()
    assert (trials.groupby("repeat")["order"].nunique() == 1).all()
    assert set(trials["order"]) == {"read_first", "write_first"}


def test_a_mode_that_a_model_cannot_do_is_listed_and_none_left_is_an_error(tmp_path: Path) -> None:
    class NativeOnly(ScriptedModel):
        modes = ("native",)

    register_model("scripted:test", lambda: NativeOnly(scripted))
    run = memeval.run(sweep(tmp_path, calling=["native", "constrained"]), tmp_path / "run")
    assert "cannot do constrained calling" in run.manifest["unsupported"][0]["reason"]
    with pytest.raises(InputError, match="none of its cells can be run"):
        memeval.run(sweep(tmp_path, calling=["prompted"]), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_bug_in_a_persons_design_stops_the_run_with_its_place(tmp_path: Path) -> None:
    class Buggy(MemoryDesign):
        name = "buggy_for_test"

        def after_turn(self, ctx: Any) -> None:
            raise ZeroDivisionError("oops")

    register(Buggy)
    with pytest.raises(HarnessError, match=r"'buggy_for_test', after_turn, in scenario 'story-0'.*line \d+"):
        memeval.run(sweep(tmp_path, designs=["buggy_for_test"]), tmp_path / "run")


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    from filelock import FileLock

    out = tmp_path / "run"
    memeval.run(sweep(tmp_path), out)
    with FileLock(out / ".lock"), pytest.raises(InputError, match="being written by another memeval"):
        memeval.run(sweep(tmp_path, repeats=3), out)


def test_unreadable_tools_are_not_run_unless_told_to(tmp_path: Path) -> None:
    def structs(messages: Any, tools: Any) -> str:
        return "{save_topic Save {object <nil> <nil> [text] map[text:{string}]}}"

    register_model("scripted:test", lambda: ScriptedModel(scripted, render=structs))
    run = memeval.run(sweep(tmp_path), tmp_path / "run")
    assert set(run.cells["fidelity"]) == {"unreadable"}
    assert len(run.trials) == 0
    forced = memeval.run(sweep(tmp_path, allow_unreadable=True), tmp_path / "forced")
    assert set(forced.cells["fidelity"]) == {"overridden"}
    assert len(forced.trials) == 8
