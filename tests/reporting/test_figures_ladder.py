from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
import synthetic
import synthetic_ladder
import test_report

import memeval
from memeval.analysis import ladder, remembered
from memeval.analysis.blame import read_blame
from memeval.evaluation.results import Run
from memeval.reporting import figures, figures_blame, words_ladder
from memeval.reporting import report as reports
from memeval.reporting.report import ASKING, notebooks, report
from memeval.reporting.show import png


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic_ladder.write(tmp_path_factory.mktemp("runs") / "ladder", smoke=True)


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return memeval.load(folder)


@pytest.fixture(scope="module")
def dose(run: Run) -> pd.DataFrame:
    return ladder.dose(run)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = tmp_path_factory.mktemp("runs") / "many"
    return memeval.load(synthetic_ladder.write(path, designs=8, modes=1, families=5, repeats=1))


def texts(figure) -> str:
    """Everything written in a figure."""
    return " ".join(text.get_text() for text in figure.findobj(mpl.text.Text))


def drawn(ax) -> list[float]:
    """The heights of the single points of a panel."""
    return sorted(float(line.get_ydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1)


def test_each_design_and_mode_has_a_panel_with_its_rates_and_its_floor(dose) -> None:
    figure = figures.ask_strength(dose)
    counted = (dose["step"] != ladder.WROTE) | (dose["strength"] == ladder.UNASKED)
    shown = dose[(dose["units"] > 0) & counted]
    panels = {ax.get_title("left").split("\n")[-1]: ax for ax in figure.axes[:4]}
    assert list(panels) == ["obeys", "deaf", "hoards", "none"]  # where asking makes the most difference first
    assert len(figure.axes) == 8
    for name, ax in panels.items():
        rates = shown.loc[(shown["calling"] == "constrained") & (shown["variant"] == name), "rate"]
        assert drawn(ax) == pytest.approx(sorted(rates))
        assert bool(ax.patches) == (name != "none")  # the band of the floor
    assert (
        figure.axes[0].get_title("left").startswith("ollama:qwen05-json · constrained · ? tools not verified")
    )


def test_the_dose_says_how_many_families_which_interval_and_that_it_is_a_smoke_test(dose) -> None:
    said = texts(figures.ask_strength(dose))
    assert "6 families, 12 turns a point; bar: 95% interval (beta-binomial over families)" in said
    assert "smoke test, not a measurement of your model" in said
    assert "saved unasked" in said


def test_many_designs_are_small_panels_and_all_figures_can_be_laid_out(many) -> None:
    blamed = ladder.breaks(many, read_blame(many.folder))
    claims, gaps = ladder.phantoms(many), ladder.gaps(many)
    dose = figures.ask_strength(ladder.dose(many))
    assert len({round(ax.get_position().x0, 3) for ax in dose.axes}) == 4
    table = figures.blamed(blamed)
    assert len(table.axes) == 1
    counts = [int(text.get_text()) for text in table.axes[0].texts]
    assert sum(counts) == blamed["failures"].sum()
    for figure in (dose, figures.phantoms_by_rung(claims), figures.ask_gaps(gaps), table):
        png(figure)  # a layout that does not fit is a warning, and a warning an error
    said = words_ladder.ladder_sentence(ladder.dose(many), gaps)
    assert "Not shown to save more when asked: " in said
    assert "hoards" in said.partition("Not shown")[2]


def test_few_families_are_counts_in_the_panels(tmp_path: Path) -> None:
    few = memeval.load(synthetic_ladder.write(tmp_path, families=3, modes=1, repeats=1))
    numbers = ladder.dose(few)
    figure = figures.ask_strength(numbers)
    assert not any(drawn(ax) for ax in figure.axes)
    assert "too few families for a rate; counted:" in texts(figure)
    row = numbers[(numbers["variant"] == "deaf") & (numbers["strength"] == "named")].iloc[0]
    assert f"{row['successes']}/{row['trials']}" in [
        text.get_text() for ax in figure.axes for text in ax.texts
    ]
    gaps = ladder.gaps(few)
    assert "too few families" in words_ladder.ladder_sentence(numbers, gaps)
    assert "only counts" in words_ladder.gaps_note(gaps)


def test_differences_name_both_rungs_and_the_designs_left_out(run) -> None:
    gaps = ladder.gaps(run)
    figure = figures.ask_gaps(gaps)
    said = texts(figure)
    assert "“the tool is named” minus “only mentioned”, paired over 6 families" in said
    assert "asked minus the same unasked, 6 and 6 families (square-and-add): Youden's J" in said
    assert "no tool that saves, or too few families: none" in said
    points = [
        float(line.get_xdata()[0]) for ax in figure.axes for line in ax.lines if line.get_marker() != "None"
    ]
    assert sorted(points) == pytest.approx(sorted(100 * gaps.loc[~gaps["few"].astype(bool), "diff"]))


def test_a_waterfall_falls_from_all_explained_failures_to_none(run) -> None:
    numbers = ladder.breaks(run, read_blame(run.folder))
    figure = figures.blamed(numbers)
    for ax in figure.axes:
        total, *bars = ax.patches
        left = total.get_width()
        for bar in bars:
            assert bar.get_x() + bar.get_width() == left
            left = bar.get_x()
        assert left == 0
        assert f"{total.get_width():.0f} of " in ax.get_title("left")
    sizes = numbers.drop_duplicates(["calling", "variant"])[["failed", "explained", "sampled"]].sum()
    said = texts(figure)
    assert f"{sizes['failed']} trials failed: {sizes['sampled']} replayed" in said
    assert f"{sizes['failed'] - sizes['explained']} not in the sample and not drawn" in said


def test_where_nothing_was_blamed_the_command_is_said(run) -> None:
    nothing = ladder.breaks(run, read_blame(run.folder).iloc[:0])
    assert "`memeval blame RUN`" in figures_blame.blamed_sentence(nothing)
    assert not figures.blamed(nothing).axes
    assert figures_blame.blamed_sentence(nothing.iloc[:0]) == "No trial of this run failed."


def test_sentences_say_what_was_asked_stored_claimed_and_left_out(run, dose) -> None:
    said = words_ladder.ladder_sentence(dose, ladder.gaps(run)).splitlines()
    assert len(said) == 6  # three designs that can save, in two modes
    assert said[0].startswith(
        "ollama:qwen05-json, constrained, obeys: Asked outright, it saved something in "
    )
    assert "(the right thing in " in said[0]
    assert "where nobody asks in " in said[0]
    assert "where the tool is named" in said[0]
    size = words_ladder.size_sentence(run.trials, dose)
    assert "4 designs. 6 families asked on 6 rungs; 6 families in which nobody asks" in size
    claims = words_ladder.phantoms_sentence(ladder.phantoms(run))
    assert "native, claimed a save that no call had made: " in claims
    questions = remembered.remembered(run)
    kept, counted = remembered.kept(questions), remembered.left_out(questions)
    told = words_ladder.remembered_sentence(kept, counted)
    assert "92 ask for what `none` answered right as well" in told
    assert "what is guessable in them is not known" in told
    assert "remembered" in texts(figures.remembered(kept))
    assert "remembered: " in words_ladder.describe_kept(kept)


def test_without_look_alikes_the_drop_alone_is_told(run) -> None:
    gaps = ladder.gaps(run)
    gaps = gaps.assign(few=gaps["few"] | (gaps["measure"] == ladder.GAP))
    said = words_ladder.ladder_sentence(ladder.dose(run), gaps)
    assert "Asked outright" not in said
    assert "Stored in 100% where the tool is named" in said


def test_alternative_texts_hold_rungs_and_counts(run) -> None:
    claims = ladder.phantoms(run)
    one = claims[(claims["variant"] == "deaf") & (claims["calling"] == "native")]
    text = words_ladder.describe_rungs(one, "Claimed")
    for row in one.to_dict("records"):
        assert f"{words_ladder.NAMES[row['strength']]}: " in text
        assert f"{row['successes']} of {row['trials']}" in text
    assert "points (" in words_ladder.describe_gaps(ladder.gaps(run))


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    (found,) = report(folder, ASKING, parameters={"level": "0.9"})
    return found


def test_the_page_is_offline_with_every_picture_named(page: Path, folder: Path, run: Run, dose) -> None:
    html = page.read_text(encoding="utf-8")
    test_report.assert_offline(html)
    pictures = test_report.Page(html).with_tag("img")
    assert len(pictures) == 5
    assert all(len(picture["alt"] or "") > 40 for picture in pictures)
    assert "smoke test" in html
    for line in words_ladder.ladder_sentence(dose, ladder.gaps(run, level=0.9)).splitlines():
        assert line in html  # the parameter arrived
    assert "Youden" in html
    assert str(folder) not in html


def test_a_run_without_ladder_and_blame_says_so_and_where_they_come_from(tmp_path: Path) -> None:
    plain = synthetic_ladder.write(
        tmp_path / "run", ladder=False, blamed=False, modes=1, families=5, repeats=1
    )
    (found,) = report(plain, ASKING)
    html = found.read_text(encoding="utf-8")
    assert "No turn of this run is on the ask-strength ladder" in html
    assert "memeval blame RUN" in html
    assert len(test_report.Page(html).with_tag("img")) == 2  # phantom saves, and what was remembered


def made(run: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the notebooks that a report of the run would execute."""
    monkeypatch.setattr(reports, "_execute", lambda source, target, given: target)
    monkeypatch.setattr(reports, "_page", lambda executed: executed)
    return [path.stem for path in report(run)]


def test_turns_on_the_ladder_or_blame_bring_the_report_beside_the_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made(folder, monkeypatch) == ["tool_selection", ASKING]
    plain = synthetic.write_run(tmp_path / "plain", families=2, repeats=1)
    assert made(plain, monkeypatch) == ["tool_selection"]
    (plain / "blame.jsonl").touch()
    assert made(plain, monkeypatch) == ["tool_selection", ASKING]
    assert made(synthetic.write_retrieval(tmp_path / "found"), monkeypatch) == ["retrieval_quality"]


def test_the_committed_notebook_is_thin_and_stripped() -> None:
    test_report.test_committed_notebooks_are_thin_and_stripped(notebooks()[ASKING])
