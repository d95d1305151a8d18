"""Stories as tests: `pytest --memeval-model ollama:qwen3:4b --memeval-design local2_dual scenarios`.

pytest imports this module whenever it starts, so nothing of memeval is imported here: without a model there
are no hooks, no stories and no cost. What does the work is in the modules beside it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import pytest


class Option(NamedTuple):
    """An option `--memeval-NAME`, and the setting `memeval_NAME` of pytest's configuration file."""

    name: str
    metavar: str
    many: bool
    help: str

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return f"--memeval-{self.name}"

    @property
    def key(self) -> str:
        """As it is written in a configuration file."""
        return f"memeval_{self.name.replace('-', '_')}"


OPTIONS = (
    Option("model", "NAME", True, "Chat model; without one, no story is collected. Repeatable."),
    Option("design", "DESIGN", True, "Design, or 'DESIGN SETTING=VALUE', or FILE.py:CLASS. Repeatable."),
    Option("calling", "MODE", True, "native, prompted or constrained; native by default. Repeatable."),
    Option("embedder", "NAME", False, "Embedder; the one of memory.yaml by default."),
    Option("repeats", "N", False, "How often each story is run; 3 by default."),
    Option("pass-rate", "RATE", False, "Share of the repeats that must pass, 0 to 1; 1 by default."),
    Option("store", "KIND", False, "chroma or inmemory; chroma by default."),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, and settings of the same names."""
    group = parser.getgroup("memeval", "memeval: stories as tests")
    for option in OPTIONS:
        action = "append" if option.many else "store"
        group.addoption(option.flag, action=action, metavar=option.metavar, help=option.help)
        kind: Literal["linelist", "string"] = "linelist" if option.many else "string"
        parser.addini(option.key, option.help, type=kind, default=[] if option.many else "")


def pytest_configure(config: pytest.Config) -> None:
    """Bring in the hooks that collect and run stories, where a model was named."""
    if not given(config, "model"):
        if config.getoption("memeval_design"):
            raise pytest.UsageError("--memeval-design needs a model: add --memeval-model NAME")
        return
    from memeval.pytest_plugin.stories import Stories

    config.addinivalue_line("markers", "memeval: stories of memeval; each has its tags as marks, too")
    config.pluginmanager.register(Stories(config), "memeval-stories")


def given(config: pytest.Config, name: str) -> list[str]:
    """What was given for an option: on the command line, else in the configuration file."""
    key = f"memeval_{name.replace('-', '_')}"
    found = config.getoption(key) or config.getini(key) or []
    return [found] if isinstance(found, str) else [str(one) for one in found]
