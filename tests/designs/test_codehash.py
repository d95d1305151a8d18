"""The hash of a person's own code: alike in every process, another one when the code is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memeval.designs import open_design
from memeval.designs.codehash import canonical, code_hash

HEAD = "import functools, re\nfrom dataclasses import dataclass\nfrom memeval.designs import *\n"
OF_SETS = """
WORDS = {"yes", "no", "maybe", "perhaps", "hardly"}
TOOLS = [save_tool("stick", "Stick."), search_tool("look", "Look.")]
class Mine(MemoryDesign):
    defaults = {"words": frozenset(WORDS)}
    def tools(self): return TOOLS
    def after_turn(self, ctx): return ctx.query in {"one", "two", "three", "four"} or ctx.query in WORDS
"""


def design_of(folder: Path, source: str) -> type:
    (folder / "mine.py").write_text(HEAD + source)
    return open_design("mine.py:Mine", folder).design


def mine(body: str, before: str = "") -> str:
    """A design whose `after_turn` is this."""
    return f"{before}\nclass Mine(MemoryDesign):\n    def after_turn(self, ctx):\n        {body}\n"


def test_a_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + OF_SETS)
    code = "from memeval.designs.registry import open_design as o; print(o('mine.py:Mine').fingerprint())"
    said = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0] == said[1]
    assert len(said[0].strip()) == 16


KEPT = "def kept(text, *, most={}): return text[:most]\n"
LOGGED = """
def logged(f):
    @functools.wraps(f)
    def with_log(*args): return f(*args)
    return with_log
@logged
def answer(): return {}
"""
CACHED = "@functools.cache\ndef answer(): return {}\n"
CALLED = "class Called:\n    def __call__(self): return {}\nanswer = Called()\n"
GIVEN = "@dataclass\nclass Given:\n    most: int\ngiven = Given({})\n"


@pytest.mark.parametrize(
    "source",
    [
        mine("return ctx.query in WORDS", "WORDS = {{'yes', '{}'}}"),
        mine("return kept(ctx.query)", KEPT),
        mine("return answer()", LOGGED),
        mine("return answer()", CACHED),
        mine("return answer()", CALLED),
        mine("return given.most", GIVEN),
        mine("return WORD.search(ctx.query)", "WORD = re.compile('{}')"),
        mine("return [most for most in (MOST,)]", "MOST = {}"),
        mine("return answer(ctx.query)", "answer = functools.partial(max, {})"),
    ],
    ids=[
        "set",
        "keyword default",
        "closure",
        "cached",
        "instance",
        "dataclass",
        "pattern",
        "inner",
        "partial",
    ],
)
def test_changed_code_has_another_hash_and_the_same_code_the_same(tmp_path: Path, source: str) -> None:
    hashes = [code_hash(design_of(tmp_path, source.format(n))) for n in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_helpers_in_a_module_of_ones_own_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a change within a second would not be seen
    hashes = []
    for most in (1, 1, 2):
        (tmp_path / "own_helpers.py").write_text(f"def most(): return {most}\n")
        monkeypatch.delitem(sys.modules, "own_helpers", raising=False)
        hashes.append(code_hash(design_of(tmp_path, "import own_helpers" + mine("own_helpers.most()"))))
    assert hashes[0] == hashes[1] != hashes[2]


def test_where_the_file_lies_and_what_has_run_is_no_part_of_the_hash(tmp_path: Path) -> None:
    source = mine("return answer(), logging.getLogger(__name__)", "import logging\n" + CACHED.format(1))
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
    one, other = (design_of(folder, source) for folder in folders)
    for _ in range(100):
        one().after_turn(None)
    assert code_hash(one) == code_hash(other)


def test_circles_end(tmp_path: Path) -> None:
    circle = (
        "ALL = [{}]\nALL.append(ALL)\ndef left(): return right()\ndef right(): return left(), ALL, Mine\n"
    )
    hashes = [code_hash(design_of(tmp_path, mine("return left()", circle.format(n)))) for n in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_attribute_that_is_called_as_a_global_is_not_taken_for_it(tmp_path: Path) -> None:
    """A notebook's `run` is no part of a design that only asks a tool for its `run`."""
    hashes = [code_hash(design_of(tmp_path, mine("return ctx.run", f"run = {n}"))) for n in (1, 2)]
    assert hashes[0] == hashes[1]


def test_a_plain_value_is_written_as_python_writes_it_and_nothing_by_its_address() -> None:
    assert [canonical(value) for value in (0.3, "auto", True, None)] == ["0.3", "'auto'", "True", "None"]
    assert canonical({"b", "a"}) == canonical({"a", "b"})
    assert "0x" not in canonical([object(), {"key": (len, canonical)}, sys])
