"""Sweep files: what they may say, and what is said where they are wrong."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from itertools import combinations, product
from pathlib import Path

import pytest
import runs

from memeval.errors import InputError
from memeval.evaluation.plan import opened
from memeval.evaluation.sweep import make_trial, plan, read_sweep, trial_seed
from memeval.models.base import Options
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.shipped import shipped

GOOD = """sweep: mine
scenarios: ["s6-preferred-language", "s6-new-session"]
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
        ("s6-new-session", "family:s7", "s6"),
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


def test_surfaces_multiply_and_what_changes_nothing_about_a_design_is_run_once(tmp_path: Path) -> None:
    more = "surfaces: [{}, {shape: split}, {shape: split, names: neutral}]"
    sweep, base = read_sweep(write(tmp_path, GOOD + more))
    assert [cell.spec.design.variant for cell in plan(sweep, base, "hash")] == [
        "local2_dual",
        "local2_dual [split]",
        "local2_dual [split, neutral names]",
        "local2_single write_path=tool",
        "local2_single write_path=tool [neutral names]",
    ]


def test_a_wrong_surface_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="surfaces"):
        read_sweep(write(tmp_path, GOOD + "surfaces: [{shape: torn}]"))


def test_a_part_may_have_a_tool_order_of_its_own(tmp_path: Path) -> None:
    parts = "parts: [{tool_order: read_first}, {tool_order: write_first, repeats: 1}]\nrepeats: 2"
    sweep, base = read_sweep(write(tmp_path, GOOD + parts))
    found = [(cell.spec.order, cell.repeats) for cell in plan(sweep, base, "hash")]
    assert found == [("read_first", 2)] * 2 + [("write_first", 1)] * 2


def test_of_parts_with_one_cell_each_scenario_keeps_its_repeats(tmp_path: Path) -> None:
    text = GOOD.replace("[local2_dual, {local2_single: {write_path: tool}}]", "[local2_dual]")
    text = text.replace("bundled:router", "scripted:test")
    parts = """embedders: [hash]
parts:
  - {repeats: 2}
  - {repeats: 4, scenarios: [s6-new-session, s5-fictional-twin]}
"""
    sweep, base = read_sweep(write(tmp_path, text + parts))
    register_model("scripted:test", lambda: ScriptedModel([]))
    with opened(sweep, base) as found:
        assert len(found.cells) == 1
        trials = [trial for _, trial in found.trials()]
    assert Counter(trial.scenario.scenario for trial in trials) == {
        "s6-preferred-language": 2, "s6-new-session": 4, "s5-fictional-twin": 4
    }  # fmt: skip


def test_parts_that_mean_two_scenarios_by_one_id_are_refused(tmp_path: Path) -> None:
    told = runs.STORY.format(name="told")
    for name, text in (("first", told), ("same", told), ("other", told.replace("Elixir", "Gleam"))):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    for name, refused in (("same", False), ("other", True)):
        parts = f"parts: [{{scenarios: [./first.yaml]}}, {{scenarios: [./{name}.yaml]}}]"
        sweep, base = read_sweep(write(tmp_path, GOOD + parts))
        with pytest.raises(InputError, match="its parts mean two scenarios by") if refused else nullcontext():
            assert [len(cell.scenarios) for cell in plan(sweep, base, "hash")] == [1, 1]


def test_repeats_that_are_not_named_have_both_tool_orders_equally_often(tmp_path: Path) -> None:
    sweep, base = read_sweep(write(tmp_path, GOOD))
    assert {cell.repeats for cell in plan(sweep, base, "hash")} == {6}


def test_a_read_only_sweep_has_trials_of_its_own(tmp_path: Path) -> None:
    keys = []
    for more in ("", "read_only: true"):
        sweep, base = read_sweep(write(tmp_path, GOOD + more))
        cell = plan(sweep, base, "hash")[0]
        trial = make_trial(sweep, cell.spec, "cell", cell.scenarios[0], 0, Options())
        keys.append((trial.key, trial.read_only))
    assert [read_only for _, read_only in keys] == [False, True]
    assert keys[0][0] != keys[1][0]


def test_a_design_may_insist_on_an_embedder_and_refuse_the_sweeps(tmp_path: Path) -> None:
    designs = "[{oxydra_tags: {embedding_backend: %s}}]"
    text = GOOD.replace("[local2_dual, {local2_single: {write_path: tool}}]", designs)
    real = "\nembedders: [{name: 'bundled:minilm', prefix: none}]"
    sweep, base = read_sweep(write(tmp_path, text % "deterministic" + real))
    (cell,) = plan(sweep, base, "hash")
    assert cell.spec.embedder.label == "hash"
    sweep, base = read_sweep(write(tmp_path, text % "fastembed" + real))
    (cell,) = plan(sweep, base, "hash")
    assert cell.spec.embedder.label == "bundled:minilm prefix=none"
    sweep, base = read_sweep(write(tmp_path, text % "fastembed" + "\nembedders: [hash]"))
    with pytest.raises(InputError, match="'fastembed', but the sweep's embedder is 'hash'"):
        plan(sweep, base, "hash")


@pytest.mark.parametrize("name", ["demo", "founding", "designs", "dual_vs_single", "compaction"])
def test_a_shipped_sweep_is_sound(name: str) -> None:
    sweep, base = read_sweep(shipped("scenarios") / "sweeps" / f"{name}.yaml")
    assert plan(sweep, base, "hash")


def test_the_fraction_of_the_surface_sweep_balances_every_pair_of_factors() -> None:
    sweep, base = read_sweep("dual_vs_single")
    cells = [c for c in plan(sweep, base, "hash") if c.spec.model == "ollama:smollm2"]
    assert 3 * sum(len(c.scenarios) * c.repeats for c in cells) == 858
    dual = [c.spec for c in cells if c.spec.design.design.name == "local2_dual"]
    fraction = [spec for spec in dual if spec.design.surface.label or spec.order == "read_first"]
    seen = [
        (s.shape == "split", s.names == "neutral", s.words == "when_to_use", spec.order == "write_first")
        for spec in fraction
        for s in [spec.design.surface]
    ]
    everything = dict.fromkeys(product((False, True), repeat=2), 2)
    assert len(set(seen)) == len(seen) == 8
    for one, other in combinations(range(4), 2):
        assert Counter((row[one], row[other]) for row in seen) == everything
