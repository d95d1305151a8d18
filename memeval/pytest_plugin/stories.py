"""Scenario files as pytest's files, each story in each cell as one of its items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memeval.errors import InfrastructureError, InputError, MemevalError
from memeval.pytest_plugin.wanted import Place, Wanted, read
from memeval.scenarios.loader import NOT_STORIES, read_scenarios
from memeval.scenarios.schema import Scenario
from memeval.yamlfile import MAX_BYTES

if TYPE_CHECKING:
    from memeval.pytest_plugin.bench import Benches, Ran

_KEY = re.compile(rb"""^(?:\xef\xbb\xbf)?["']?(scenario|family|sessions)["']?[ \t]*:""", re.MULTILINE)
"""Keys of a story. Two make a file one, so that one may be misspelt; Molecule's have `scenario`, too."""


class Stories:
    """The hooks of a pytest run that was given a model."""

    wanted: Wanted

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.files: list[Path] = []
        self._tags: dict[str, bool] = {}

    @cached_property
    def benches(self) -> Benches:
        """What stories are run on; imported with the first one, so that collecting stays quick."""
        from memeval.pytest_plugin.bench import Benches

        return Benches(self.wanted, self.files)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Check what was asked for. Late enough for a conftest.py to have registered models and designs."""
        self.wanted = read(self.config)

    def pytest_report_header(self) -> str:
        """What is asked for, in one line."""
        wanted = self.wanted
        names = (", ".join(part) for part in (wanted.designs, wanted.models, wanted.calling))
        times = f"{wanted.repeats} repeats, {wanted.pass_rate:.0%} must pass"
        return f"memeval: {' · '.join(names)} · {wanted.embedder} · {wanted.store} · {times}"

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> StoryFile | None:
        """A YAML file that holds stories, or is named on the command line; not in folders of sweeps."""
        if file_path.suffix not in (".yaml", ".yml") or not NOT_STORIES.isdisjoint(self._folders(file_path)):
            return None
        if not (parent.session.isinitpath(file_path) or _holds_stories(file_path)):
            return None
        file: StoryFile = StoryFile.from_parent(parent, path=file_path, stories=self)
        return file

    def _folders(self, file: Path) -> tuple[str, ...]:
        root = self.config.rootpath
        return file.parent.relative_to(root).parts if file.is_relative_to(root) else (file.parent.name,)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put stories in the order of their cells, among the places that stories have."""
        order = {place: number for number, place in enumerate(self.wanted.places())}
        stories = [item for item in items if isinstance(item, Story)]
        self.files = list(dict.fromkeys(story.path for story in stories))
        sorted_ = iter(sorted(stories, key=lambda story: order[story.place]))
        items[:] = [next(sorted_) if isinstance(item, Story) else item for item in items]

    def marks(self, tags: Iterable[str]) -> Iterator[str]:
        """Tags as marks that `--strict-markers` takes; those that mean something else to pytest left out."""
        for tag in tags:
            if tag not in self._tags:
                known = (line.partition(":")[0] for line in self.config.getini("markers"))
                # a mark that takes arguments, such as skipif or timeout, does something
                self._tags[tag] = not any(name.startswith(f"{tag}(") for name in known)
                if self._tags[tag]:
                    self.config.addinivalue_line("markers", f"{tag}: stories with this tag")
            if self._tags[tag]:
                yield tag

    def pytest_sessionfinish(self) -> None:
        """Let go of what is open."""
        if "benches" in vars(self):
            self.benches.close()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The table of pass rates. It reads reports alone, which xdist's workers send."""
        from memeval.pytest_plugin.telling import summary

        if lines := summary(terminalreporter.stats):
            terminalreporter.section("memeval")
            for line in lines:
                terminalreporter.write_line(line)


class StoryFile(pytest.File):
    """A scenario file."""

    def __init__(self, *, stories: Stories, **kw: Any) -> None:
        super().__init__(**kw)
        self.stories = stories

    def collect(self) -> Iterator[Story]:
        """Its stories in every cell. What is wrong with the file is one sentence with file and line."""
        try:
            found = read_scenarios(self.path)
            if not found:
                raise InputError(f"{self.path}: no scenario in it")
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for scenario in found:
            for place in self.stories.wanted.places():
                yield Story.from_parent(
                    self, name=f"{scenario.scenario}[{place}]",
                    stories=self.stories, scenario=scenario, place=place,
                )  # fmt: skip


class Story(pytest.Item):
    """A story in a cell: its repeats are run in the setup, and judged in the test.

    So whatever keeps it from being run is an error or a skip, and only a verdict is a failure.
    """

    ran: Ran
    enough: bool

    def __init__(self, *, stories: Stories, scenario: Scenario, place: Place, **kw: Any) -> None:
        super().__init__(**kw)
        self.stories, self.scenario, self.place = stories, scenario, place
        self.add_marker("memeval")
        for name in stories.marks(scenario.tags):
            self.add_marker(name)
        # what libraries warn about is no verdict on a story, even where a project makes warnings errors
        self.add_marker(pytest.mark.filterwarnings("default"))
        self.tell(story=scenario.scenario, **place._asdict(), repeats=stories.wanted.repeats)
        self.tell(required=stories.wanted.pass_rate)

    def tell(self, **facts: str | int | float | bool) -> None:
        """Put facts into the report: JUnit files and the table at the end have them."""
        self.user_properties += [(f"memeval_{name}", value) for name, value in facts.items()]

    def setup(self) -> None:
        """Run the repeats."""
        try:
            self.ran = self.stories.benches.of(self.place.model).run(self.scenario.scenario, self.place)
        except InfrastructureError as error:
            self._skip(str(error))
        except MemevalError as error:
            from memeval.pytest_plugin.bench import NoVerdictError

            if isinstance(error, NoVerdictError):
                self._skip(str(error))
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self._count()

    def _count(self) -> None:
        """Count the repeats that have a verdict; without any, or with too few to tell, there is none."""
        rows = [result.trial for result in self.ran.trials]
        valid = [row for row in rows if row.outcome != "invalid"]
        invalid = [row.invalid_reason for row in rows if row.outcome == "invalid"]
        passed = sum(row.passed is not False for row in valid)
        cell, wanted = self.ran.cell, self.stories.wanted
        self.tell(embedder=cell.embedder, fidelity=cell.fidelity, smoke=cell.smoke)
        self.tell(valid=len(valid), passed=passed, invalid=len(invalid))
        if invalid:
            self.tell(invalid_reason=invalid[-1])
        if valid:
            self.tell(pass_rate=round(passed / len(valid), 4))
        missing = wanted.repeats - len(valid)
        # a server that was lost leaves a verdict only where no further repeat could have changed it
        hopeless = passed + missing < _needed(wanted.pass_rate, wanted.repeats)
        if not valid or (self.ran.lost and not hopeless):
            self._skip(self.ran.lost or f"all repeats are invalid: {invalid[-1]}")
        self.enough = passed >= _needed(wanted.pass_rate, len(valid))

    def runtest(self) -> None:
        """Fail where too few repeats passed, and show the turns that broke."""
        if not self.enough:
            from memeval.pytest_plugin.telling import failure

            every = self.config.get_verbosity() > 0
            text = failure(self.ran, self.scenario, self.stories.wanted.pass_rate, every)
            raise pytest.fail.Exception(text, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the story stands."""
        return self.path, (self.scenario.line("scenario") or 1) - 1, self.name

    def _skip(self, reason: str) -> None:
        self.tell(not_run=reason)
        raise pytest.skip.Exception(reason) from None


def _needed(rate: float, trials: int) -> float:
    return rate * trials - 1e-9


def _holds_stories(file: Path) -> bool:
    try:
        with file.open("rb") as text:
            return len(set(_KEY.findall(text.read(MAX_BYTES)))) > 1
    except OSError:
        return False
