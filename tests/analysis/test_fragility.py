"""What accidents do to a rate, by hand, planted in frames, and planted in a model that is run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import runs
from scipy import stats

import memeval
from memeval.analysis import fragility
from memeval.analysis.fragility import PARTS
from memeval.errors import InputError
from memeval.evaluation.perturb import ACCIDENTS, LEVELS, drawn
from memeval.messages import Message, Tool, ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel
from memeval.reporting import figures_fragility
from memeval.reporting.show import png

Outcome = Callable[[int, dict[str, bool]], float]


def run(
    outcome: Outcome, *, families: int = 18, repeats: int = 8, seed: int = 1, variant: str = "d",
    calling: str = "native", accidents: Sequence[Any] = ACCIDENTS,
    keep: Callable[[int, int], bool] = lambda family, repeat: True,
) -> Any:  # fmt: skip
    """Trials of one design; `outcome` gives the chance to pass from the family and the changed accidents."""
    rng = np.random.default_rng(seed)
    rows = []
    for family in range(families):
        for repeat in range(repeats):
            levels = {"order": "read_first", "names": "as_written", "request": "as_written"}
            levels |= {"distractors": "none"} | drawn(accidents, 0, repeat)
            changed = {name: levels[name] == LEVELS[name][1] for name in ACCIDENTS}
            passed = bool(rng.random() < outcome(family, changed))
            if keep(family, repeat):
                rows.append(
                    {"model": "m", "calling": calling, "variant": variant, "smoke": False, "outcome": "ok",
                     "fidelity": "readable", "family": f"f{family}", "scenario": f"s{family}",
                     "repeat": repeat, "passed": passed, "perturb": tuple(accidents),
                     "order": levels["order"], "perturbed_names": levels["names"],
                     "request": levels["request"], "distractors": levels["distractors"]}
                )  # fmt: skip
    return SimpleNamespace(trials=pd.DataFrame(rows).astype({"passed": "boolean"}), turns=None)


def both(*of: Any) -> Any:
    return SimpleNamespace(trials=pd.concat([one.trials for one in of], ignore_index=True), turns=None)


def share_of(found: Any, **more: Any) -> dict[str, float]:
    table = fragility.shares(found, value="passed", **({"resamples": 50} | more))
    return dict(zip(table["part"], table["share"], strict=True))


def told(found: Any) -> list[str]:
    table = fragility.effects(found, value="passed")
    return list(table.loc[table["told"], "factor"])


# Shares


def test_an_outcome_that_depends_on_one_accident_alone_is_all_its_own() -> None:
    for name in ACCIDENTS:
        found = share_of(run(lambda family, changed, name=name: float(changed[name])))
        assert found.pop(name) == pytest.approx(1)
        assert found == pytest.approx(dict.fromkeys(found, 0) | {"together": 0}, abs=1e-9)


def test_shares_sum_to_one() -> None:
    messy = run(
        lambda family, changed: 0.3 + 0.02 * family + 0.2 * changed["names"],
        keep=lambda f, r: (f + r) % 5 > 0,
    )
    assert sum(share_of(messy).values()) == pytest.approx(1)


def test_where_nothing_depends_on_anything_chance_has_it_all() -> None:
    found = share_of(run(lambda family, changed: 0.5, families=150))
    assert all(found[name] < 0.02 for name in (*ACCIDENTS, "together"))
    assert found["by family"] < 0.1
    assert found["rest"] > 0.85
    assert told(run(lambda family, changed: 0.5, families=150)) == []


def test_which_story_it_is_has_a_share_of_its_own() -> None:
    found = share_of(run(lambda family, changed: float(family % 2)))
    assert found["stories"] == pytest.approx(1)


def test_an_accident_that_helps_some_families_and_harms_others_is_not_taken_for_chance() -> None:
    either = run(lambda family, changed: float(changed["order"] == bool(family % 2)))
    found = share_of(either)
    assert found["by family"] == pytest.approx(1, abs=0.05)
    assert found["order"] == pytest.approx(0, abs=1e-9)
    assert told(either) == []


def test_shares_are_epsilon_squared_by_hand() -> None:
    found = run(
        lambda family, changed: 0.2 + 0.04 * family + 0.4 * changed["order"], accidents=["order", "names"]
    )
    y = found.trials.assign(y=found.trials["passed"].astype(float))
    grand, n, families = y["y"].mean(), len(y), y["family"].nunique()
    total = ((y["y"] - grand) ** 2).sum()
    means = {name: y.groupby(fragility.COLUMNS.get(name, name))["y"].mean() for name in ("order", "names")}
    main = {name: n / 2 * ((mean - grand) ** 2).sum() for name, mean in means.items()}
    cell = y.groupby(["family", "order", "perturbed_names"])["y"].transform("mean")
    stories = 8 * ((y.groupby("family")["y"].mean() - grand) ** 2).sum()
    # within a family: two means a factor, and what of its four cells these two leave over
    own = sum(
        4 * ((y.groupby(["family", column])["y"].mean() - y.groupby("family")["y"].mean()) ** 2).sum()
        for column in ("order", "perturbed_names")
    )
    left = total - stories - own
    assert left >= ((y["y"] - cell) ** 2).sum()
    error = left / (n - families - 2 * families)
    share = share_of(found)
    for name in ("order", "names"):
        assert share[name] == pytest.approx(max(0, main[name] - error) / total)
    assert share["stories"] == pytest.approx((stories - (families - 1) * error) / total)
    together = own - sum(main.values()) - (2 * families - 2) * error
    assert share["by family"] == pytest.approx(max(0, together) / total)


def test_missing_trials_do_not_mix_accidents_up() -> None:
    holes = run(
        lambda family, changed: float(changed["request"]),
        keep=lambda family, repeat: (family * 3 + repeat) % 7 > 1,
    )
    assert 0.95 < share_of(holes)["request"] < 1  # levels that are no longer even share a little of it
    found = fragility.effects(holes, value="passed").set_index("factor")["effect"]
    assert found.to_dict() == pytest.approx(dict.fromkeys(ACCIDENTS, 0) | {"request": 1})
    assert told(holes) == ["request"]


def test_accidents_that_always_changed_together_have_one_share_and_no_effect() -> None:
    four = run(lambda family, changed: float(changed["order"]), repeats=4)
    found = share_of(four)
    mixed = [name for name in ACCIDENTS if math.isnan(found[name])]
    assert set(mixed) == set(ACCIDENTS)  # of four repeats every accident goes with another one
    assert found["together"] == pytest.approx(1)
    table = fragility.effects(four, value="passed")
    assert table["few"].all()
    assert not table["told"].any()


def test_stories_of_one_family_are_told_apart_and_resampled_as_one() -> None:
    found = run(lambda family, changed: float(family % 2))
    found.trials["family"] = [f"f{int(name[1:]) // 2}" for name in found.trials["family"]]
    assert share_of(found)["stories"] == pytest.approx(1)
    table = fragility.shares(found, value="passed", resamples=50)
    assert set(table["families"]) == {9}


def test_intervals_hold_the_share_and_are_the_same_each_time() -> None:
    moved = run(lambda family, changed: 0.2 + 0.6 * changed["order"])
    table = fragility.shares(moved, value="passed").set_index("part")
    assert table.loc["order", "lo"] < 0.36 < table.loc["order", "hi"]
    again = fragility.shares(moved, value="passed").set_index("part")
    pd.testing.assert_frame_equal(table, again)
    whole = fragility.overall(moved, value="passed").iloc[0]
    parts = table["share"].drop(["stories", "rest"]).sum()
    assert whole["accidents"] == pytest.approx(parts)
    assert whole["accidents_lo"] < whole["accidents"] < whole["accidents_hi"]
    assert (whole["units"], whole["trials"]) == (18, 144)


# Effects


def test_an_effect_is_the_mean_over_families_of_changed_minus_as_written() -> None:
    moved = run(lambda family, changed: 0.2 + 0.5 * changed["names"] + 0.01 * family)
    rows = moved.trials.assign(y=moved.trials["passed"].astype(float))
    rate = rows.groupby(["family", "perturbed_names"])["y"].mean().unstack()
    test = stats.ttest_1samp(rate["neutral"] - rate["as_written"], 0)
    interval = test.confidence_interval(0.95)
    row = fragility.effects(moved, value="passed").set_index("factor").loc["names"]
    assert (row["effect"], row["lo"], row["hi"]) == pytest.approx(
        (float((rate["neutral"] - rate["as_written"]).mean()), interval.low, interval.high)
    )
    assert row["p"] == pytest.approx(4 * test.pvalue)  # the smallest of four, by Holm
    counts = rows.groupby("perturbed_names")["y"].agg(["sum", "count"])
    assert (row["yes"], row["of"]) == tuple(counts.loc["neutral"])
    assert (row["to"], row["from"], row["families"]) == ("neutral", "as_written", 18)


def test_too_few_families_are_counted_and_nothing_is_told_of_them() -> None:
    few = run(lambda family, changed: float(changed["order"]), families=4)
    table = fragility.effects(few, value="passed")
    assert table["few"].all()
    assert table["effect"].isna().all()
    assert not table["told"].any()
    assert list(table.loc[table["factor"] == "order", ["yes", "of", "yes_from"]].iloc[0]) == [16, 16, 0]
    assert fragility.shares(few, value="passed")["share"].isna().all()
    whole = fragility.overall(few, value="passed").iloc[0]
    assert whole["few"]
    assert math.isnan(whole["accidents"])


def test_a_rate_that_never_varies_has_no_shares() -> None:
    always = run(lambda family, changed: 1.0)
    assert fragility.shares(always, value="passed")["share"].isna().all()
    assert fragility.overall(always, value="passed")["accidents"].isna().all()
    assert told(always) == []


def test_designs_and_calling_modes_are_never_mixed() -> None:
    found = both(
        run(lambda family, changed: float(changed["order"])),
        run(lambda family, changed: float(changed["names"]), calling="constrained"),
        run(lambda family, changed: float(changed["request"]), variant="e"),
    )
    table = fragility.shares(found, value="passed", resamples=50)
    whole = table[table["share"] > 0.99].set_index(["calling", "variant"])["part"]
    assert whole.to_dict() == {
        ("native", "d"): "order", ("constrained", "d"): "names", ("native", "e"): "request"
    }  # fmt: skip


def test_what_was_not_perturbed_is_left_out_and_may_be_all_there_is() -> None:
    plain = run(lambda family, changed: 0.0)
    plain.trials["perturb"] = [()] * len(plain.trials)
    mixed = both(run(lambda family, changed: float(changed["order"])), plain)
    assert share_of(mixed)["order"] == pytest.approx(1)
    for table in (fragility.effects, fragility.shares, fragility.overall):
        found = table(plain, value="passed")
        assert not len(found)
        assert list(found.columns) == list(table(mixed, value="passed").columns)
    with pytest.raises(InputError, match="did you mean 'passed'"):
        fragility.effects(plain, value="pass")


def test_only_the_accidents_of_the_sweep_have_parts() -> None:
    one = run(lambda family, changed: float(changed["names"]), accidents=["names"])
    table = fragility.shares(one, value="passed", resamples=50)
    assert list(table["part"]) == ["names", "together", "by family", "stories", "rest"]
    assert table.loc[0, "share"] == pytest.approx(1)


def test_invalid_trials_count_nowhere() -> None:
    found = run(lambda family, changed: float(changed["order"]))
    found.trials.loc[found.trials["repeat"] == 0, "passed"] = True
    found.trials.loc[found.trials["repeat"] == 0, "outcome"] = "invalid"
    table = fragility.effects(found, value="passed").set_index("factor")
    assert table["effect"].to_dict() == pytest.approx(dict.fromkeys(ACCIDENTS, 0) | {"order": 1})
    assert table.loc["order", ["yes", "of", "yes_from", "of_from"]].tolist() in (
        [54, 54, 0, 72],
        [72, 72, 0, 54],
    )
    assert fragility.overall(found, value="passed")["invalid"].tolist() == [18]


# A model that is run


def test_a_model_that_goes_by_the_order_is_found_out(tmp_path: Path) -> None:
    def first_tool(messages: Sequence[Message], tools: Sequence[Tool]) -> Any:
        """Saves if a tool that writes is listed first; whatever it is called and whatever is asked."""
        last = messages[-1]
        saving = [tool for tool in tools if {"topic", "content"} <= set(tool.parameters["properties"])]
        if last.role == "user" and "Elixir" in last.content and tools[0].effect == "write":
            return ToolCall(saving[0].name, {"topic": "user.language", "content": "Elixir"})
        return "Elixir."

    register_model("scripted:test", lambda: ScriptedModel(first_tool))
    given = runs.sweep(tmp_path, 12, perturb=list(ACCIDENTS), repeats=8, designs=["local2_single"])
    stories = tmp_path / "stories.yaml"
    words = "- user: Please remember my preferred language is Elixir.\n"
    more = f"{words}        paraphrases: [Elixir is what I prefer. Keep it in mind.]\n"
    stories.write_text(stories.read_text().replace(words, more))
    done = memeval.run(given, tmp_path / "run")
    for value in ("called", "saved"):
        table = fragility.shares(done, value=value, resamples=50).set_index("part")["share"]
        assert table["order"] == pytest.approx(1)
        assert table.drop("order").fillna(0).abs().max() < 1e-9
        found = fragility.effects(done, value=value).set_index("factor")
        assert found["effect"].to_dict() == pytest.approx(
            {"order": 1, "names": 0, "request": 0, "distractors": 0}
        )
        assert list(found.index[found["told"]]) == ["order"]
        assert fragility.overall(done, value=value)["rate"].tolist() == pytest.approx([0.5])


# The figure


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.findobj(mpl.text.Text)]


def drawn_of(found: Any) -> Any:
    tables = [
        table(found, value="passed") for table in (fragility.overall, fragility.shares, fragility.effects)
    ]
    return figures_fragility.fragility(*tables)


def test_the_figure_stacks_the_shares_beside_the_rate() -> None:
    found = both(
        run(lambda family, changed: 0.2 + 0.6 * changed["order"], variant="low x=1"),
        run(lambda family, changed: 0.9, variant="high x=1"),
    )
    figure = drawn_of(found)
    left, middle, _ = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["high", "low"]
    table = fragility.shares(found, value="passed")
    for y, variant in enumerate(("high x=1", "low x=1")):
        bars = [bar for bar in middle.patches if abs(bar.get_y() + bar.get_height() / 2 - y) < 1e-6]
        shares = table[table["variant"] == variant].set_index("part")["share"].fillna(0)
        assert [bar.get_width() for bar in bars] == pytest.approx([shares.get(part, 0) for part in PARTS])
    said = texts(figure)
    effect = fragility.effects(found, value="passed")
    points = 100 * effect.loc[effect["told"], "effect"].iloc[0]
    assert f"write first {points:+.0f}" in said
    assert "none told apart" in said
    assert any("18 families, 144 trials a point" in text and "all with x=1" in text for text in said)
    assert png(drawn_of(found)) == png(figure)


def test_the_figure_says_where_there_is_nothing_to_take_apart() -> None:
    assert "always the same: no variance" in " ".join(texts(drawn_of(run(lambda family, changed: 1.0))))
    few = run(lambda family, changed: float(changed["order"]), families=4)
    assert "too few families to say" in " ".join(texts(drawn_of(few)))
    none = run(lambda family, changed: 0.5)
    none.trials["perturb"] = [()] * len(none.trials)
    assert not drawn_of(none).axes


def test_the_text_of_the_figure_holds_its_numbers() -> None:
    found = both(
        run(lambda family, changed: float(changed["order"])),
        run(lambda family, changed: 0.5, variant="e"),
        run(lambda family, changed: 0.0, variant="never"),
    )
    said = figures_fragility.describe_fragility(
        fragility.overall(found, value="passed"), fragility.effects(found, value="passed")
    )
    assert "m, native, d: 50%" in said
    assert "accidents make 100% of its variance" in said
    assert "write first +100 points" in said
    assert "no accident is told apart" in said
    assert "it never varied" in said
