"""Sweep files: what they may say, and what is said where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.errors import InputError
from memeval.evaluation.sweep import plan, read_sweep, trial_seed
from memeval.shipped import shipped

GOOD = """sweep: mine
scenarios: ["family:s6"]
designs: [local2_dual, {local2_single: {write_path: tool}}]
models: [bundled:router]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text)
    return path


def test_a_sweep_multiplies_into_cells_and_equal_ones_are_run_once(tmp_path: Path) -> None:
    sweep, base = read_sweep(write(tmp_path, GOOD + "parts: [{}, {scenarios: [s6-new-session]}]"))
    cells = plan(sweep, base, "hash")
    assert [cell.spec.design.variant for cell in cells] == ["local2_dual", "local2_single write_path=tool"]
    assert [len(cell.scenarios) for cell in cells] == [2, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("repeat: 3", "unknown key 'repeat'; did you mean 'repeats'"),
        ("repeats: three", "repeats"),
        ("repeats: 0", "repeats"),
        ("sweep: again", "stands twice"),
        ("tool_order: sorted", "tool_order"),
        ("options: {temprature: 1}", "did you mean 'temperature'"),
        ("options: {num_ctx: big}", "num_ctx is 'big'"),
        ("options: {seed: 3}", "the sweep's `seed`"),
        ("embedders: [{name: hash, prefix: both}]", "prefix"),
        ("title: &a x", "anchors"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, change: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_sweep(write(tmp_path, GOOD + change))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`models` is missing"):
        read_sweep(write(tmp_path, GOOD.replace("models", "#")))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("local2_dual", "local2_duel", "did you mean 'local2_dual'"),
        ("family:s6", "family:s7", "s6"),
        ("write_path: tool", "write_path: tools", "auto_turn, tool, off"),
    ],
)
def test_an_unknown_name_is_refused_before_anything_runs(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    sweep, base = read_sweep(write(tmp_path, GOOD.replace(old, new)))
    with pytest.raises(InputError, match=said):
        plan(sweep, base, "hash")


def test_shipped_sweeps_are_found_by_name_and_plan() -> None:
    for file in (shipped("scenarios") / "sweeps").glob("*.yaml"):
        sweep, base = read_sweep(file.stem)
        assert plan(sweep, base, "hash")
    with pytest.raises(InputError, match="did you mean 'demo'"):
        read_sweep("dmeo")


def test_a_seed_depends_on_sweep_story_and_repeat_alone() -> None:
    assert trial_seed(0, "s6", 1) == trial_seed(0, "s6", 1)
    assert len({trial_seed(s, n, r) for s in (0, 1) for n in ("a", "b") for r in (0, 1)}) == 8
