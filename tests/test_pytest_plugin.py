"""Stories as tests: what is collected, what passes, fails and is skipped, and what a reader is told."""

from __future__ import annotations

import importlib.util
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

# imported here, because pytester takes what an inner run imports out of sys.modules again, numpy included
import chromadb.errors  # noqa: F401
import pytest

import memeval.memory.chroma
import memeval.memory.inmemory
import memeval.pytest_plugin.stories
import memeval.pytest_plugin.telling  # noqa: F401
from memeval.evaluation.runner import run
from memeval.pytest_plugin.bench import Bench
from memeval.pytest_plugin.wanted import Place, Wanted

pytest_plugins = ["pytester"]

INSTALLED = any(entry_points(group="pytest11", name="memeval"))
DESIGN = "local2_single write_path=tool"
STORY = """\
scenario: {name}
family: {name}
title: A preference that the user asks to be remembered
tags: [acceptance, timeout]
facts:
  language: {{text: The language is Elixir., values: [Elixir], key: user.language}}
sessions:
  - turns:
      - user: Please {call} my preferred language is Elixir.
        expect: {{intent: remember, facts: [language], required: [called], answer: {{confirms: [language]}}}}
  - turns:
      - user: What language do I prefer?
        expect: {{intent: recall, facts: [language], answer: {{states: [language]}}}}
"""
CONFTEST = '''
from pathlib import Path

from memeval.errors import InfrastructureError
from memeval.messages import ToolCall
from memeval.models.registry import register_model
from memeval.models.scripted import ScriptedModel

ENDS = {"slow": ("it took too long", "timeout"), "down": ("no server answers", "server_down")}


class Acting(ScriptedModel):
    """Does in its n-th trial what the n-th word of its name says, and the last one from then on."""

    def __init__(self, name, modes=("native", "prompted", "constrained"), prompt=None):
        super().__init__(self.act, name, render=lambda messages, tools: prompt)
        self.plan, self.trials, self.modes = name.partition(":")[2].split("-"), 0, modes

    def act(self, messages, tools):
        if self.name == "acting:gone":
            raise InfrastructureError("no server answers", kind="server_down")
        last = messages[-1]
        mumbles = self.name == "acting:mumbles"
        if last.role == "tool":
            return "I do not know." if mumbles and last.tool_name == "recall_topic" else "Elixir."
        if last.content.startswith("Please"):
            self.trials += 1
            with Path("told.txt").open("a") as told:
                told.write(f"{self.name} {len(tools)}\\n")
        mood = self.plan[min(self.trials, len(self.plan)) - 1]
        if mood in ENDS and self.trials:
            raise InfrastructureError(ENDS[mood][0], kind=ENDS[mood][1])
        if mood == "claims":
            return "I will remember that you prefer Elixir." if "Please" in last.content else "I do not know."
        if "Please" in last.content:
            content = "hm" if mumbles else "Elixir"
            return ToolCall("save_topic", {"topic": "user.language", "content": content})
        return ToolCall("recall_topic", {"topic": "user.language"})

    def render(self, messages, tools=()):
        with Path("rendered.txt").open("a") as told:
            told.write(f"{self.name}\\n")
        return super().render(messages, tools)


for plan in ("ok", "claims", "ok-claims-ok", "slow-ok", "slow", "ok-down", "claims-down", "mumbles", "gone"):
    register_model(f"acting:{plan}", lambda name=f"acting:{plan}": Acting(name))
register_model("acting:native", lambda: Acting("acting:native", modes=("native",)))
register_model("acting:blind", lambda: Acting("acting:blind", prompt="You are a helpful assistant."))
'''
OWN = """
from memeval.designs import MemoryDesign, save_tool


class Broken(MemoryDesign):
    name = "broken"

    def tools(self):
        return [save_tool("save_topic", "Save.")]

    def before_turn(self, ctx):
        raise ZeroDivisionError("my own bug")
"""


@pytest.fixture(autouse=True)
def _folder(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    story(pytester)


def story(pytester: pytest.Pytester, name: str = "tale", file: str = "", call: str = "remember") -> Path:
    path = pytester.path / (file or f"stories/{name}.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STORY.format(name=name, call=call), encoding="utf-8")
    return path


def ask(pytester: pytest.Pytester, model: str, *args: str, design: str = DESIGN) -> pytest.RunResult:
    """An inner pytest over the stories, in this process."""
    given = [f"--memeval-model={model}", f"--memeval-design={design}"]
    return pytester.runpytest_inprocess(
        *plugin(), *given, "--memeval-embedder=hash", "--memeval-store=inmemory", *args
    )


def plugin() -> list[str]:
    """Loaded by its entry point where the package was installed with it.

    Without Hypothesis's plugin, which imports all of Hypothesis at the end of every inner run (0.5 s).
    """
    return ["-p", "no:hypothesispytest", *([] if INSTALLED else ["-p", "memeval.pytest_plugin"])]


def text(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


# What it costs, and what is collected


def test_without_a_model_nothing_is_collected_and_nothing_of_memeval_imported(
    pytester: pytest.Pytester,
) -> None:
    (pytester.path / "conftest.py").unlink()
    pytester.makepyfile(
        """
        import sys

        def test_what_is_loaded():
            loaded = {name for name in sys.modules if name.startswith("memeval")}
            assert loaded <= {"memeval", "memeval.pytest_plugin"}
            assert not {"chromadb", "pandas", "numpy", "pydantic"} & set(sys.modules)
        """
    )
    result = pytester.runpytest_subprocess(*plugin(), "--strict-config")
    result.assert_outcomes(passed=1)
    assert "memeval:" not in text(result)


def test_the_entry_point_names_the_plugin() -> None:
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    points = declared["project"]["entry-points"]["pytest11"]
    assert points == {"memeval": "memeval.pytest_plugin"}
    assert importlib.util.find_spec(points["memeval"])


def test_a_story_is_an_item_in_every_cell_and_a_model_stays_at_hand(pytester: pytest.Pytester) -> None:
    story(pytester, "saga")
    result = ask(
        pytester,
        "acting:ok",
        "--memeval-model=acting:claims",
        "--memeval-design=none",
        "--collect-only",
        "-q",
    )
    cells = ["local2_single write_path=tool-acting:ok", "none-acting:ok",
             "local2_single write_path=tool-acting:claims", "none-acting:claims"]  # fmt: skip
    wanted = [f"stories/{name}.yaml::{name}[{cell}-native]" for cell in cells for name in ("saga", "tale")]
    assert [line for line in result.outlines if "::" in line] == wanted


def test_files_that_hold_no_story_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", compose="services: {}", molecule="scenario:\n  name: default\n")
    pytester.makefile(".yml", broken="a: [")
    for folder in ("sweeps", "retrieval"):
        story(pytester, "other", f"stories/{folder}/other.yaml")
    pytester.makepyfile("def test_of_their_own(): pass")
    ask(pytester, "acting:ok").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (STORY.format(name="tale", call="remember").replace("title:", "titel:"),
         "*tale.yaml:3: unknown key 'titel'; did you mean 'title'?*"),
        (STORY.format(name="tale", call="remember").replace("scenario:", "scenaro:"),
         "*tale.yaml:1: unknown key 'scenaro'; did you mean 'scenario'?*"),
        (STORY.format(name="tale", call="remember") + "  - [", "*tale.yaml:1*: not valid YAML*"),
    ],
)  # fmt: skip
def test_a_broken_story_is_one_sentence(pytester: pytest.Pytester, content: str, said: str) -> None:
    (pytester.path / "stories" / "tale.yaml").write_text(content, encoding="utf-8")
    result = ask(pytester, "acting:ok")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    assert "Traceback" not in text(result)


def test_a_file_that_is_named_must_hold_a_story(pytester: pytest.Pytester) -> None:
    pytester.makefile(".yaml", empty="")
    result = ask(pytester, "acting:ok", "empty.yaml")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*empty.yaml: no scenario in it"])


def test_tags_are_marks(pytester: pytest.Pytester) -> None:
    """But for one that means something to pytest: `timeout` without arguments would be an error."""
    ask(pytester, "acting:ok", "--strict-markers", "-m", "acceptance and memeval").assert_outcomes(passed=1)
    ask(pytester, "acting:ok", "-m", "not acceptance").assert_outcomes(deselected=1)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--memeval-model=bundled:ruter"], "no model 'bundled:ruter'; did you mean 'bundled:router'"),
        (["--memeval-design=local2_dul"], "no design 'local2_dul'; did you mean 'local2_dual'"),
        (
            ["--memeval-design=local2_dual write_pth=tool"],
            "no setting 'write_pth'; did you mean 'write_path'",
        ),
        ([f"--memeval-design={DESIGN}", "--memeval-design=local2_single  write_path=tool"], "no design"),
        (["--memeval-calling=nativ"], "--memeval-calling 'nativ' is not known; did you mean 'native'"),
        (["--memeval-embedder=bundled:minlm"], "no embedder 'bundled:minlm'; did you mean 'bundled:minilm'"),
        (["--memeval-store=chrom"], "--memeval-store 'chrom' is not known; did you mean 'chroma'"),
        (["--memeval-repeats=0"], "--memeval-repeats is '0'; it must be a whole number from 1 to 1000"),
        (["--memeval-pass-rate=80"], "--memeval-pass-rate is '80'; it must be a number from 0 to 1"),
    ],
)
def test_what_is_not_there_is_a_usage_error(pytester: pytest.Pytester, args: list[str], said: str) -> None:
    result = ask(pytester, "acting:ok", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in "\n".join(result.errlines)


def test_a_model_needs_a_design_and_a_design_a_model(pytester: pytest.Pytester) -> None:
    alone = pytester.runpytest_inprocess(*plugin(), "--memeval-model=acting:ok")
    alone.stderr.fnmatch_lines(["ERROR: --memeval-design is missing; there are: *local2_dual*"])
    alone = pytester.runpytest_inprocess(*plugin(), "--memeval-design=none")
    alone.stderr.fnmatch_lines(["ERROR: --memeval-design needs a model: add --memeval-model NAME"])


def test_everything_can_stand_in_the_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml(
        f"""
        [tool.pytest.ini_options]
        memeval_model = ["acting:ok"]
        memeval_design = ["{DESIGN}", "none"]
        memeval_embedder = "hash"
        memeval_store = "inmemory"
        memeval_repeats = 1
        memeval_pass_rate = 0.0
        """
    )
    result = pytester.runpytest_inprocess(*plugin())
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [f"memeval: {DESIGN}, none · acting:ok · native · hash · inmemory · 1 *, 0%*"]
    )


# Verdicts


def test_a_story_passes_where_enough_repeats_pass(pytester: pytest.Pytester) -> None:
    ask(pytester, "acting:ok", "--memeval-store=chroma").assert_outcomes(passed=1)
    ask(pytester, "acting:ok-claims-ok").assert_outcomes(failed=1)
    ask(pytester, "acting:ok-claims-ok", "--memeval-pass-rate=0.6").assert_outcomes(passed=1)
    ask(pytester, "acting:ok-claims-ok", "--memeval-repeats=1").assert_outcomes(passed=1)


def test_a_failure_shows_turn_call_store_answer_and_verdict(pytester: pytest.Pytester) -> None:
    result = ask(pytester, "acting:ok-claims-ok")
    result.stdout.fnmatch_lines(
        [
            "passed 2 of 3 repeats, 100% must pass; broken at s1t1 called",
            "tale, repeat 1, trial *",
            "local2_single write_path=tool · acting:ok-claims-ok · native · tools write_first",
            "not passed, broken at s1t1 called",
            "Session 1",
            "  Turn 1 asks to: remember",
            "    user      Please remember my preferred language is Elixir.",
            "    model     I will remember that you prefer Elixir.",
            "    store     (empty)",
            "    expected  called (required); the answer confirms Elixir",
            "    verdict   called ✗  arguments –  stored –*",
        ]
    )
    assert "Session 2" not in text(result)
    assert "Traceback" not in text(result)
    assert not [line for line in result.outlines if line.startswith("E ")]


def test_a_failure_shows_the_turn_that_lost_the_fact_and_the_one_that_missed_it(
    pytester: pytest.Pytester,
) -> None:
    """With calls, their arguments and results. Repeats that broke in the same words are shown once."""
    ask(pytester, "acting:mumbles").stdout.fnmatch_lines(
        [
            "passed 0 of 3 repeats, 100% must pass; broken at s1t1 arguments (3x)",
            "tale, repeat 0, trial *",
            "the same in repeat 1, 2",
            "Session 1",
            '    call      save_topic(topic="user.language", content="hm")',
            "    result    *",
            "    model     Elixir.",
            "    store     user.language (tool): hm",
            "    verdict   called ✓  arguments ✗ *passed ✓",
            "Session 2",
            '    call      recall_topic(topic="user.language")',
            "    model     I do not know.",
            "    store     user.language (tool): hm",
            "    expected  the answer states Elixir",
            "    verdict   * passed ✗",
        ]
    )


def test_an_invalid_repeat_is_not_counted(pytester: pytest.Pytester) -> None:
    result = ask(pytester, "acting:slow-ok")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*2/2*", "Invalid trials, not counted (1): timeout: it took too long"])


def test_without_a_valid_repeat_there_is_no_verdict(pytester: pytest.Pytester) -> None:
    """Three invalid trials in a row are taken for a broken server: the next story does not wait for it."""
    story(pytester, "zaga")
    result = ask(pytester, "acting:slow", "-rs")
    result.assert_outcomes(skipped=2)
    reason = "acting:slow was lost at tale: it took too long"
    result.stdout.fnmatch_lines([f"Not run, no verdict (2): {reason}", f"SKIPPED [[]2]*: {reason}"])
    assert len((pytester.path / "told.txt").read_text().splitlines()) == 3


def test_a_server_that_goes_away_leaves_no_verdict_unless_it_was_reached(pytester: pytest.Pytester) -> None:
    ask(pytester, "acting:ok-down").assert_outcomes(skipped=1)
    result = ask(pytester, "acting:claims-down")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["passed 0 of 1 repeats, 100% must pass; broken at s1t1 called; 1 invalid*"])
    ask(pytester, "acting:claims-down", "--memeval-pass-rate=0.5").assert_outcomes(skipped=1)


def test_a_server_that_is_gone_is_not_asked_again(pytester: pytest.Pytester) -> None:
    story(pytester, "saga")
    result = ask(pytester, "acting:gone")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*(2): acting:gone was lost at the check of fidelity: no server answers"])


def test_without_a_server_stories_are_skipped_and_it_says_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    result = ask(pytester, "ollama:qwen3:4b", "--memeval-model=acting:ok", "-rs")
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "Not run, no verdict (1): no Ollama server answers at http://127.0.0.1:1: start one with*",
            "SKIPPED*no Ollama server answers at http://127.0.0.1:1: start one with `ollama serve`*",
        ]
    )


def test_a_bug_in_a_design_is_an_error(pytester: pytest.Pytester) -> None:
    (pytester.path / "own.py").write_text(OWN, encoding="utf-8")
    result = ask(pytester, "acting:ok", f"--junitxml={pytester.path}/report.xml", design="own.py:Broken")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["design 'broken', before_turn, in scenario 'tale'*ZeroDivisionError: my own*"]
    )
    assert ElementTree.parse(pytester.path / "report.xml").find(".//error") is not None


def test_a_calling_mode_that_a_model_cannot_do_is_skipped_unless_it_is_the_only_one(
    pytester: pytest.Pytester,
) -> None:
    result = ask(pytester, "acting:native", "--memeval-calling=native", "--memeval-calling=constrained")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*acting:native cannot do constrained calling; it can do native"])
    result = ask(pytester, "acting:native", "--memeval-calling=constrained")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*none of its cells can be run: acting:native cannot do constrained*"])


def test_tools_that_a_model_cannot_read_leave_no_verdict(pytester: pytest.Pytester) -> None:
    result = ask(pytester, "acting:blind")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*acting:blind cannot read the tools of local2_single write_path=tool: *"])


def test_a_story_that_a_design_cannot_tell_is_skipped(pytester: pytest.Pytester) -> None:
    story(pytester, call="call {save_tool} and remember")
    result = ask(pytester, "acting:ok", "--memeval-design=none")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*the user names the saving tool, and none has none"])


# The same trials as `memeval run`


def test_trials_are_those_of_a_run_and_fidelity_is_checked_once_a_cell(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = story(pytester, "saga")
    wanted = Wanted(
        designs={DESIGN: {"local2_single": {"write_path": "tool"}}}, models=("acting:ok",),
        calling=("native",), embedder="hash", repeats=2, pass_rate=1.0, store="inmemory", host=None,
    )  # fmt: skip
    exec(CONFTEST, {"__name__": "conftest"})
    files = [story(pytester), other]
    done = run(wanted.sweep("acting:ok", files), pytester.path / "run").trials
    (pytester.path / "rendered.txt").unlink()
    bench = Bench(wanted, "acting:ok", files)
    place = Place(DESIGN, "acting:ok", "native")
    rows = [result.trial for name in ("tale", "saga") for result in bench.run(name, place).trials]
    bench.close()
    same = ["trial_key", "seed", "order", "passed", "called", "stored", "retrieved", "answered"]
    mine = sorted([getattr(row, name) for name in same] for row in rows)
    assert mine == sorted(done[same].values.tolist())
    assert (pytester.path / "rendered.txt").read_text().splitlines() == ["acting:ok"]


# What other tools are told


def test_junit_has_the_numbers(pytester: pytest.Pytester) -> None:
    ask(pytester, "acting:ok-claims-ok", f"--junitxml={pytester.path}/report.xml")
    root = ElementTree.parse(pytester.path / "report.xml")
    told = {p.get("name"): p.get("value") for p in root.iter("property")}
    assert told == {
        "memeval_story": "tale", "memeval_design": DESIGN, "memeval_model": "acting:ok-claims-ok",
        "memeval_calling": "native", "memeval_embedder": "hash", "memeval_fidelity": "unverified",
        "memeval_repeats": "3", "memeval_required": "1.0", "memeval_smoke": "True", "memeval_valid": "3",
        "memeval_passed": "2", "memeval_invalid": "0", "memeval_pass_rate": "0.6667",
    }  # fmt: skip
    failure = root.find(".//failure")
    assert failure is not None
    assert (failure.get("message") or "").startswith("Failed: passed 2 of 3 repeats, 100% must pass")


def test_the_table_has_a_column_a_cell(pytester: pytest.Pytester) -> None:
    story(pytester, "saga")
    result = ask(pytester, "acting:ok", "--memeval-design=none")
    result.stdout.fnmatch_lines(
        [
            "repeats passed · acting:ok · native · 100% must pass",
            "story*local2_single write_path=tool*none",
            "saga *3/3*✗ 0/3",
            "tale *3/3*✗ 0/3",
            "Bundled and scripted models are a smoke test, not a measurement of your model.",
        ]
    )


def test_workers_of_xdist_share_the_stories(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    for name in ("saga", "epic", "myth"):
        story(pytester, name)
    result = pytester.runpytest_subprocess(
        *plugin(), "-n2", "--memeval-model=acting:ok", f"--memeval-design={DESIGN}", "--memeval-design=none",
        "--memeval-embedder=hash", f"--junitxml={pytester.path}/report.xml",
    )  # fmt: skip
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(["passed 0 of 3 repeats*", "*memeval*", "saga *3/3*✗ 0/3"])
    assert "INTERNALERROR" not in text(result)
    assert len(ElementTree.parse(pytester.path / "report.xml").findall(".//testcase")) == 8
