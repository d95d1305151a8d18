"""The worked example runs as a person would run it: only what was edited is run again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from memeval.shipped import shipped


def test_an_edited_design_is_run_anew_and_its_old_rows_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(shipped("notebooks") / "your_design.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    scope: dict[str, Any] = {}
    tables = []
    for source in cells:
        fewer = source.replace('"tag:remember", "tag:decoy"', '"s6-preferred-language", "s6-new-session"')
        exec(fewer, scope)
        if source.endswith("\ntable"):
            tables.append(scope["table"])
    ran = [
        tuple(map(int, pair)) for pair in re.findall(r"(\d+) trials run, (\d+) in", capsys.readouterr().out)
    ]
    assert ran == [(12, 12), (4, 12), (12, 16)]
    assert list(tables[0].index) == ["local2_dual", "local2_single", "sticky"]
    assert tables[0].drop("sticky").equals(tables[1].drop("sticky"))
    assert "sticky [merged]" in tables[2].index
