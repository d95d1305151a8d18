from datetime import UTC, datetime
from pathlib import Path

import pytest

from memeval.errors import InputError
from memeval.scenarios.loader import load_folder, load_scenarios, read_scenarios, schema_json
from memeval.shipped import shipped

STORY = """
scenario: {id}
family: {family}
title: A story
tags: [{tag}]
facts:
  colour: {{text: The colour is teal., values: [teal]}}
sessions:
  - at: 2026-05-30T09:00:00Z
    turns:
      - user: Please remember that my colour is teal.
        expect: {{intent: remember, facts: [colour], answer: {{confirms: [colour]}}}}
"""


def story(name: str, family: str = "f", tag: str = "t") -> str:
    return STORY.format(id=name, family=family, tag=tag)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "stories"
    for name in ("one", "two", "sweeps", "retrieval"):
        (folder / name).mkdir(parents=True)
    (folder / "one" / "a.yaml").write_text(story("alpha", "fa", "red") + "---" + story("beta", "fa", "blue"))
    (folder / "two" / "b.yaml").write_text(story("gamma", "fb", "red"))
    (folder / "sweeps" / "s.yaml").write_text("sweep: x")
    (folder / "retrieval" / "r.yaml").write_text("retrieval: x")
    return folder


@pytest.mark.parametrize(
    ("patterns", "ids"),
    [
        (["*"], "alpha beta gamma"),
        (["tag:red"], "alpha gamma"),
        (["family:fa"], "alpha beta"),
        (["gamma", "alpha"], "gamma alpha"),
        (["*a"], "alpha beta gamma"),
        (["be*", "tag:blue", "beta"], "beta"),
        (["two"], "gamma"),
        (["one/a.yaml"], "alpha beta"),
        ("beta", "beta"),
    ],
)
def test_patterns_choose_by_tag_family_id_glob_and_path(root: Path, patterns: list[str], ids: str) -> None:
    assert [s.scenario for s in load_scenarios(patterns, root)] == ids.split()


def test_a_file_anywhere_can_be_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(story("mine"))
    by_path = load_scenarios([tmp_path / "own.yaml"], root)
    by_base = load_scenarios(["own.yaml", "tag:blue"], root, base=tmp_path)
    assert [s.scenario for s in by_path] == ["mine"]
    assert [s.scenario for s in by_base] == ["mine", "beta"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("tag:rad", "no scenario matches 'tag:rad'; did you mean 'red'?"),
        ("family:fc", "no scenario matches 'family:fc'; did you mean"),
        ("alfa", "did you mean 'alpha'?"),
        ("tags:red", "'tags' is not a way to choose; did you mean 'tag'?"),
        ("nowhere.yaml", "nowhere.yaml: no such file or folder"),
        ("no/where", "no/where: no such file or folder"),
    ],
)
def test_a_pattern_without_match_names_the_nearest(root: Path, pattern: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenarios([pattern], root)
    assert message in str(caught.value)


def test_no_patterns_at_all_is_an_error(root: Path) -> None:
    with pytest.raises(InputError, match="no scenarios were asked for"):
        load_scenarios([], root)


def test_two_stories_under_one_id_are_refused_with_both_places(root: Path, tmp_path: Path) -> None:
    (root / "two" / "c.yaml").write_text("# comment\n" + story("alpha"))
    with pytest.raises(InputError) as caught:
        load_folder(root)
    assert "c.yaml:3: scenario 'alpha' stands twice, first at" in str(caught.value)
    assert "a.yaml:2; give one of them another id" in str(caught.value)
    (root / "two" / "c.yaml").unlink()
    (tmp_path / "own.yaml").write_text(story("alpha"))
    with pytest.raises(InputError, match="stands twice"):
        load_scenarios(["alpha", tmp_path / "own.yaml"], root)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[colour], answer", "[color], answer", ":12: alpha has no fact 'color'; did you mean 'colour'?"),
        ("confirms: [colour]", "confirms: [coulour]", ":12: alpha has no fact 'coulour'"),
        ("intent: remember", "intnet: remember", "expect.intnet'; did you mean 'intent'?"),
        ("intent: remember", "intent: save", ":12: sessions.1.turns.1.expect.intent: should be 'remember'"),
        ("values: [teal]", "values: [7]", ":7: facts.colour.values.1: should be a valid string, not 7"),
        ("title: A story\n", "", ":2: key 'title' is missing"),
        ("  - at: 2026", "  - tat: 2026", ":9: unknown key 'sessions.1.tat'; did you mean 'at'?"),
        ("2026-05-30T09:00:00Z", "yesterday", ":9: sessions.1.at: should be a valid datetime"),
        ("scenario: alpha", "scenario: Alpha Beta", ":2: scenario: String should match pattern"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_what_would_be_right(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(story("alpha").replace(old, new))
    with pytest.raises(InputError) as caught:
        read_scenarios(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(story("alpha").replace("09:00:00Z", "09:00:00"))
    assert read_scenarios(path)[0].sessions[0].at == datetime(2026, 5, 30, 9, tzinfo=UTC)


def test_a_story_knows_its_file_and_lines(root: Path) -> None:
    beta = load_scenarios("beta", root)[0]
    assert beta.source == root / "one" / "a.yaml"
    assert beta.line("scenario") == 14
    assert beta.line("facts", "colour", "values", 0) == 19


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no scenario in it"):
        load_scenarios(["./empty"], tmp_path, base=tmp_path)


def test_the_schema_that_editors_use_is_up_to_date() -> None:
    assert (shipped("scenarios") / "schema.json").read_text(encoding="utf-8") == schema_json()


def test_shipped_says_what_is_missing() -> None:
    with pytest.raises(InputError, match="'stories'"):
        shipped("stories")
