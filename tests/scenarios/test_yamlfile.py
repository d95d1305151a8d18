from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from memeval.errors import InputError
from memeval.yamlfile import MAX_DEPTH, checked, locate, read_documents, read_yaml


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "file.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_words_that_older_yaml_turned_into_something_else_stay_words(tmp_path: Path) -> None:
    text = "norway: no\ntime: 12:30:45\nday: 2026-05-30\non: off\nversion: 1_000\nmerge: {<<: x}\nquoted: '1'"
    data, _ = read_yaml(written(tmp_path, text))
    assert data == {
        "norway": "no", "time": "12:30:45", "day": "2026-05-30", "on": "off", "version": "1_000",
        "merge": {"<<": "x"}, "quoted": "1",
    }  # fmt: skip


def test_plain_values_of_yaml_1_2_are_read(tmp_path: Path) -> None:
    data, _ = read_yaml(written(tmp_path, "[1, -2, 3.5, 1e3, true, False, ~, '', [], {}]"))
    assert data == [1, -2, 3.5, 1000.0, True, False, None, "", [], {}]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: 2\na: 3", "file.yaml:3: key 'a' stands twice, first on line 1"),
        ("a: &x [1]\nb: 2", "file.yaml:1: anchors and aliases"),
        ("a: 1\nb: *x", "file.yaml:2: "),
        ("a: 1\n&k b: 2", "file.yaml:2: anchors and aliases"),
        ("a: !!python/object:os.system {}", "file.yaml:1: tags"),
        ("a: !!str 1", "file.yaml:1: tags"),
        ("a:\n  ? [1, 2]\n  : 3", "file.yaml:2: a key must be plain text"),
        ("a: 1\nb: [1, 2", "file.yaml:2: not valid YAML"),
        ("a: 1\n b: : 2\n", "file.yaml:2: not valid YAML"),
        (b"a: 1\nb: \xff\xfe", "file.yaml:2: not UTF-8 text"),
        ('a: "\\ud800"', "file.yaml:1: half of a surrogate pair"),
        ("a: 1\n---\nb: 2\n", "file.yaml:3: 2 documents where one is wanted"),
        ("", "file.yaml:1: 0 documents"),
        ("[" * 3000 + "]" * 3000, f"file.yaml:1: nested more than {MAX_DEPTH} deep"),
        (b"a: " + b"x" * 1_000_001, "a file may hold 1,000,000"),
        (b"a: \x00", "not valid YAML"),
    ],
)
def test_what_is_dangerous_or_doubtful_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_yaml(written(tmp_path, content))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_alias_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
    with pytest.raises(InputError, match="anchors and aliases"):
        read_yaml(written(tmp_path, bomb))


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_a_byte_order_mark_is_tolerated(tmp_path: Path) -> None:
    assert read_yaml(written(tmp_path, b"\xef\xbb\xbfa: 1"))[0] == {"a": 1}


def test_documents_keep_their_own_lines(tmp_path: Path) -> None:
    first, second = read_documents(written(tmp_path, "# head\na: 1\n---\n\nb:\n  - x\n  - c: 2\n"))
    assert (first.data, locate(first.lines, ["a"])) == ({"a": 1}, 2)
    assert locate(second.lines, ["b", 1, "c"]) == 7
    assert locate(second.lines, ["b", 1, "not", "there"]) == 7
    assert locate(second.lines, ["not"]) == 5


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    colour: str
    size: int = 1


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    parts: list[Inner]
    named: dict[str, Inner] | None = None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("parts:\n  - color: red\n", "2: unknown key 'parts.1.color'; did you mean 'colour'? (and 1 more)"),
        ("parts: []\nnamed:\n  x: {colour: red, sise: 2}\n", "did you mean 'size'?"),
        ("prats: []\n", "1: unknown key 'prats'; did you mean 'parts'?"),
        ("parts:\n  - size: 2\n", "2: key 'parts.1.colour' is missing"),
        ("parts:\n  - colour: 7\n", "parts.1.colour: should be a valid string, not 7; put it in quotes"),
        ("[]", "the document: should be"),
    ],
)
def test_what_a_model_refuses_is_told_with_line_key_and_nearest_name(
    tmp_path: Path, content: str, message: str
) -> None:
    path = written(tmp_path, content)
    data, lines = read_yaml(path)
    with pytest.raises(InputError) as caught:
        checked(Outer, data, path, lines)
    assert message in str(caught.value)


def told_or_read(path: Path, content: bytes) -> str:
    """The error's message, or the file's name where there was none to tell."""
    path.write_bytes(content)
    try:
        read_documents(path)
    except InputError as error:
        return str(error)
    return str(path)


@given(st.binary(max_size=200))
def test_any_bytes_give_data_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    assert told_or_read(path, content).startswith(str(path))


@given(st.text(alphabet="ab:-[]{}#&*!|>'\"%@` \n?,~19.", max_size=60))
def test_any_yaml_like_text_gives_data_or_one_clear_error(
    tmp_path_factory: pytest.TempPathFactory, content: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "like.yaml"
    assert told_or_read(path, content.encode()).startswith(str(path))
