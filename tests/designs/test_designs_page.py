"""The page that lists the designs says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import memeval.designs
from memeval.designs import open_design
from memeval.designs.registry import _BUILT_IN

PAGE = (Path(memeval.designs.__file__).parent / "README.md").read_text(encoding="utf-8")
ROWS = {
    cells[1].strip().strip("`"): [cell.strip() for cell in cells[2:-1]]
    for line in PAGE.splitlines()
    if line.startswith("| `") and len(cells := line.replace(r"\|", "/").split("|")) == 7
}


def test_the_table_lists_every_built_in_design_in_their_order() -> None:
    assert list(ROWS) == [design.name for design in _BUILT_IN]


@pytest.mark.parametrize("name", [name for name in ROWS if name != "oxydra_tags"])
def test_its_row_names_the_tools_and_hooks_that_it_has(name: str) -> None:
    design = open_design(name)()
    _origin, tools, hooks, _choices = ROWS[name]
    usual = [part.strip() for part in tools.split(";")[0].split(",") if part.strip()]
    if usual != ["search_observations on request"]:
        assert usual == [tool.name for tool in design.tools()]
    assert tuple(hook.strip() for hook in hooks.split(",") if hook.strip()) == design.hooks()


@pytest.mark.parametrize("number", range(1, 41))
def test_every_ambiguity_is_spoken_of(number: int) -> None:
    import re

    assert re.search(rf"\bA{number}\b", PAGE), f"A{number}"
