import ast
import json
import os
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
import synthetic

from memeval.errors import HarnessError, InputError
from memeval.reporting.html import combine
from memeval.reporting.report import FITS, MANY_DESIGNS, notebooks, report

REPORTS = (*FITS.values(), MANY_DESIGNS)


class Page(HTMLParser):
    """Collects what could load or run something, and the pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def with_tag(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag == name]


def assert_offline(html: str) -> None:
    page = Page(html)
    assert not page.with_tag("script")
    assert not page.with_tag("link")
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert not (attributes.get(name) or "").startswith(("http", "//", "file", "javascript"))
    policy = [meta.get("content") or "" for meta in page.with_tag("meta") if "http-equiv" in meta]
    assert any("default-src 'none'" in content for content in policy)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write_run(tmp_path_factory.mktemp("runs") / "run", smoke=True)


@pytest.fixture(scope="module")
def page(run: Path) -> Path:
    (found,) = report(run, parameters={"level": "0.9"})
    return found


def test_a_tool_run_gets_its_report_as_notebook_and_page(page: Path, run: Path) -> None:
    assert page == run / "report" / "tool_selection.html"
    html = page.read_text(encoding="utf-8")
    assert "90% interval" in html  # the parameter arrived
    assert "stored the right thing: " in html
    assert page.with_suffix(".ipynb").is_file()


def test_the_page_loads_nothing_runs_nothing_and_names_its_pictures(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert_offline(html)
    pictures = Page(html).with_tag("img")
    assert len(pictures) == 8
    assert all((picture["src"] or "").startswith("data:image/png;base64,") for picture in pictures)
    assert all(len(picture["alt"] or "") > 40 for picture in pictures)


def test_a_retrieval_run_gets_the_retrieval_report(tmp_path: Path) -> None:
    (found,) = report(synthetic.write_retrieval(tmp_path), parameters={"value": "mrr@10"})
    html = found.read_text(encoding="utf-8")
    assert found.name == "retrieval_quality.html"
    assert_offline(html)
    assert "Best: ollama:all-minilm with prefix mode card, mrr@10" in html
    assert all("mrr@10 by embedder" in (p["alt"] or "") for p in Page(html).with_tag("img")[:2])


def test_a_value_that_only_the_notebook_can_judge_is_still_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean 'mrr@10'"):
        report(synthetic.write_retrieval(tmp_path), parameters={"value": "mmr@10"})


def test_what_a_model_wrote_cannot_run_in_the_page(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_code_and_machine_paths_stay_out(page: Path, run: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert "memeval.load" not in html
    assert str(run) not in html
    executed = nbformat.read(page.with_suffix(".ipynb"), as_version=4)
    injected = [c for c in executed.cells if "injected-parameters" in c.metadata.get("tags", [])]
    assert len(injected) == 1
    executed.cells.remove(injected[0])
    assert str(run.parent) not in nbformat.writes(executed)
    assert "papermill" not in executed.metadata


def test_unknown_parameters_and_wrong_types_are_refused_before_anything_runs(
    run: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"no parameter is called 'levle'; did you mean 'level'"):
        report(run, out=tmp_path / "out", parameters={"levle": 0.9})
    with pytest.raises(InputError, match=r"'level' of tool_selection\.ipynb is a number, not 'high'"):
        report(run, out=tmp_path / "out", parameters={"level": "high"})
    assert not (tmp_path / "out").exists()


def test_unknown_notebooks_and_folders_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'tool_selection'"):
        report(run, "tool_selektion")
    with pytest.raises(InputError, match="it is not a report"):
        report(run, "your_design")
    with pytest.raises(InputError, match="no folder"):
        report(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"neither rows\.jsonl nor"):
        report(tmp_path)


def test_a_missing_kernel_is_named_with_the_command_that_mends_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install ipykernel"):
        report(run, out=tmp_path)


def test_a_failing_cell_is_named_and_the_notebook_kept(run: Path, tmp_path: Path) -> None:
    source = tmp_path / "broken.ipynb"
    notebook = nbformat.v4.new_notebook()
    parameters = nbformat.v4.new_code_cell('run: str = "x"  # a folder\nlevel: float = 0.9  # a level')
    parameters.metadata["tags"] = ["parameters"]
    notebook.cells = [parameters, nbformat.v4.new_code_cell("1 / 0")]
    notebook.metadata["kernelspec"] = {"name": "some-other-kernel", "display_name": "x", "language": "python"}
    nbformat.write(notebook, source)
    before = os.environ.get("JUPYTER_PATH")
    with pytest.raises(HarnessError, match=r"broken\.ipynb failed with ZeroDivisionError: division by zero"):
        report(run, source, out=tmp_path / "out")
    assert (tmp_path / "out" / "broken.ipynb").is_file()
    assert os.environ.get("JUPYTER_PATH") == before


def test_the_front_page_holds_answer_picture_provenance_and_link(page: Path, run: Path) -> None:
    manifest = {"sweep": "<b>demo</b>", "seed": 7, "cells": [{"cell": "a"}], "models": ["m1", "m2"]}
    index = combine([page], manifests={"demo": manifest})
    html = index.read_text(encoding="utf-8")
    assert index == run / "report" / "index.html"
    assert_offline(html)
    assert "stored the right thing: " in html
    (picture,) = Page(html).with_tag("img")
    assert (picture["alt"] or "").startswith("Share of please-remember turns")
    assert {"href": "tool_selection.html"} in Page(html).with_tag("a")
    assert "&lt;b&gt;demo&lt;/b&gt;" in html
    assert "m1, m2" in html
    assert str(run) not in html


def test_nothing_to_combine_is_refused() -> None:
    with pytest.raises(InputError, match="no report"):
        combine([])


@pytest.mark.parametrize("path", [notebooks()[name] for name in REPORTS], ids=lambda path: path.stem)
def test_committed_notebooks_are_thin_and_stripped(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    assert "papermill" not in json.dumps(notebook.metadata)
    assert notebook.cells[0].source.startswith("# ")
    assert notebook.cells[0].source.split("\n")[0].endswith("?")
    for cell in notebook.cells:
        assert set(cell.metadata.get("tags", [])) <= {"parameters", "remove-cell"}
        assert all(len(line) <= 100 for line in cell.source.split("\n"))
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
            assert len(cell.source.split("\n")) <= 12
            banned = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.Lambda)
            assert not any(isinstance(node, banned) for node in ast.walk(ast.parse(cell.source)))
    (parameters,) = [c for c in notebook.cells if "parameters" in c.metadata.get("tags", [])]
    for line, node in zip(parameters.source.split("\n"), ast.parse(parameters.source).body, strict=True):
        assert isinstance(node, ast.AnnAssign)
        ast.literal_eval(node.value)
        assert "  # " in line


def test_a_run_of_many_designs_gets_them_side_by_side(tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", synthetic.design_rows(5), families=10, repeats=2)
    (found,) = report(run)
    html = found.read_text(encoding="utf-8")
    assert found.name == "design_comparison.html"
    assert_offline(html)
    assert "Tiny models: " in html
    assert len(Page(html).with_tag("img")) == 4
    assert html.index("not exercised live") > html.index("What was exercised")


def test_a_run_of_surfaces_is_told_what_part_each_factor_has(tmp_path: Path) -> None:
    run = synthetic.write_run(tmp_path / "run", synthetic.surface_rows(), families=16, repeats=1)
    (found,) = report(run)
    html = found.read_text(encoding="utf-8")
    assert found.name == "tool_selection.html"
    assert "7 other surfaces of local2_dual" in html
    assert "by the split and" in html
    assert len(Page(html).with_tag("img")) == 9
