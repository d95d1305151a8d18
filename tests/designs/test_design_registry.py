"""Designs by name, from a notebook, from a file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memeval.designs import MemoryDesign, design_names, open_design, register, save_tool
from memeval.errors import HarnessError, InputError


def test_built_in_designs_are_known() -> None:
    assert {"local2_dual", "local2_single", "none", "full_context"} <= set(design_names())


def test_an_unknown_design_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'local2_dual'"):
        open_design("local2_duel")


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'write_path'"):
        open_design({"local2_dual": {"write_pth": "tool"}})


def test_a_value_that_is_no_choice_is_refused() -> None:
    with pytest.raises(InputError, match="auto_turn, tool, off"):
        open_design({"local2_dual": {"write_path": "always"}})


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="top_k"):
        open_design({"local2_dual": {"top_k": "five"}})


def test_a_variant_names_what_differs_from_the_defaults() -> None:
    spec = open_design({"local2_dual": {"write_path": "tool", "top_k": 5}})
    assert spec.variant == "local2_dual write_path=tool"


def test_a_fingerprint_changes_with_what_the_model_is_shown() -> None:
    plain, longer = (
        open_design("local2_single"),
        open_design({"local2_single": {"descriptions": "length_matched"}}),
    )
    assert plain.fingerprint() == open_design("local2_single").fingerprint()
    assert plain.fingerprint() != longer.fingerprint()


def test_known_fingerprints_stay_and_a_raised_version_changes_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Trials on disk are recognised by these; a version of 1 is no part of them."""
    known = {"local2_dual": "ba1621d10fb9ceda", "none": "e69302f090512d5b"}
    assert {name: open_design(name).fingerprint() for name in known} == known
    monkeypatch.setattr(open_design("none").design, "version", 2)
    assert open_design("none").fingerprint() != known["none"]
    assert open_design("local2_dual").fingerprint() == known["local2_dual"]


def test_a_design_from_a_file_is_found_and_its_code_is_in_its_fingerprint(tmp_path: Path) -> None:
    source = (
        "from memeval.designs import *\nclass Mine(MemoryDesign):\n    name='mine'\n"
        "    def after_turn(self, ctx):\n        x = {}\n"
    )
    (tmp_path / "mine.py").write_text(source.format(1))
    first = open_design("mine.py:Mine", tmp_path).fingerprint()
    (tmp_path / "mine.py").write_text(source.format(2))
    assert open_design("mine.py:Mine", tmp_path).fingerprint() != first
    with pytest.raises(InputError, match="did you mean 'Mine'"):
        open_design("mine.py:Mien", tmp_path)


def test_a_design_from_a_file_has_its_own_name_and_never_a_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from memeval.designs import *\nfrom memeval.designs.local2 import Local2Dual\n"
        "class Mine(Local2Dual):\n    def system_prompt(self):\n        return 'Quite another prompt.'\n"
        "class Fake(Mine):\n    name = 'none'\n"
    )
    assert open_design("mine.py:Mine", tmp_path).variant == "Mine"
    assert open_design("local2_dual").design.name == "local2_dual"
    assert open_design("mine.py:Local2Dual", tmp_path).variant == "local2_dual"  # the built-in one itself
    with pytest.raises(InputError, match=r"Fake\.name is 'none', as a built-in design is called"):
        open_design("mine.py:Fake", tmp_path)


def test_a_file_that_fails_to_import_is_its_authors_bug_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('oh')\n")
    with pytest.raises(HarnessError, match="line 2"):
        open_design("broken.py:Any", tmp_path)


def test_a_registered_design_may_be_registered_again_but_not_under_a_built_in_name() -> None:
    def make(text: str) -> type[MemoryDesign]:
        class Noted(MemoryDesign):
            name = "noted_for_test"

            def tools(self):  # type: ignore[no-untyped-def]
                return [save_tool("note", text)]

        return Noted

    register(make("one"))
    first = open_design("noted_for_test").fingerprint()
    register(make("two"))
    assert open_design("noted_for_test").fingerprint() != first
    with pytest.raises(InputError, match="built-in"):
        register(type("Fake", (MemoryDesign,), {"name": "none"}))


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, value: str = "wall:Sticky") -> None:
    """A package in a folder, as pip would leave it, that offers a design."""
    about = folder / "wall-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wall\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[memeval.designs]\nsticky_installed = {value}\n")
    (folder / "wall.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "wall", raising=False)


def test_a_design_of_an_installed_package_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from memeval.designs import *\nclass Sticky(MemoryDesign):\n    name='sticky_installed'\n"
    installed(tmp_path, monkeypatch, source)
    assert "sticky_installed" in design_names()
    spec = open_design("sticky_installed")
    assert spec.user_written
    assert spec.variant == "sticky_installed"


def test_a_design_of_an_installed_package_has_its_own_name_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "from memeval.designs.memex import Memex\nclass Sticky(Memex): ...\n")
    assert open_design("sticky_installed").design.name == "Sticky"
    (tmp_path / "wall.py").write_text(
        "from memeval.designs.memex import Memex\nclass Sticky(Memex):\n    name = 'memex'\n#\n"
    )
    sys.modules.pop("wall", None)
    with pytest.raises(InputError, match=r"Sticky\.name is 'memex'"):
        open_design("sticky_installed")


def test_an_entry_point_that_is_no_design_or_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, "Sticky = 3\n")
    with pytest.raises(InputError, match=r"entry point 'sticky_installed' \(wall:Sticky\) is 3"):
        open_design("sticky_installed")
    (tmp_path / "wall.py").write_text("import nothing_of_this_name\n")
    sys.modules.pop("wall", None)
    with pytest.raises(HarnessError, match="package 'wall' raised ModuleNotFoundError"):
        open_design("sticky_installed")
