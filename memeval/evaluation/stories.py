"""The stories of a run as they stand today; not those that a model would be shown otherwise now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from memeval.evaluation.sweep import digest
from memeval.scenarios.loader import load_scenarios
from memeval.scenarios.schema import SAVE_TOOL, Scenario, Turn

NotTold = Literal["story_missing", "story_changed"]


class Stories:
    """Finds the story that a trial was run on, with today's facts and expectations.

    Looked up in `patterns` if there are any (as `load_scenarios` reads them), else in the files that the
    run's sweep names, seen from the working folder or a folder above the run, and among the shipped stories.
    """

    def __init__(
        self, manifest: Mapping[str, Any], folder: Path, patterns: Sequence[str | Path] | None = None
    ) -> None:
        self._known: Mapping[str, Mapping[str, Any]] = manifest.get("scenarios", {})
        self._sources = _given(patterns) if patterns else _own(manifest.get("definition", {}), folder)
        self._found: dict[str, list[Scenario]] = {}

    def find(self, name: str) -> Scenario | NotTold:
        """The story of a name if a model is shown the same of it as in the run, else why there is none."""
        shown = self._known.get(name, {}).get("shown")
        for story in self._named(name):
            if digest(story.shown()) == shown:
                return story
        return "story_changed" if name in self._found else "story_missing"

    def _named(self, name: str) -> Iterator[Scenario]:
        """All stories of a name; a further source is read only when those before it were not enough."""
        yield from self._found.get(name, ())
        for stories in self._sources:
            for story in stories:
                self._found.setdefault(story.scenario, []).append(story)
            yield from (story for story in stories if story.scenario == name)


def tells(story: Scenario, evidence: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the turns of a trial are the story's, in its words or a paraphrase: a run that was gone on with
    holds those of older ones.
    """
    return all(
        (turn := turn_at(story, kept["session"], kept["turn"])) is not None
        and any(_said(words, kept["user"]) for words in (turn.user, *turn.paraphrases))
        for kept in evidence
    )


def _said(words: str, said: str) -> bool:
    """Whether these are the words, with any name in the place of the saving tool's."""
    return re.fullmatch(r"[\w.-]*".join(map(re.escape, words.split(SAVE_TOOL))), said) is not None


def turn_at(story: Scenario, session: int, turn: int) -> Turn | None:
    """A story's turn by its place, both counted from 1."""
    turns = story.sessions[session - 1].turns if session <= len(story.sessions) else []
    return turns[turn - 1] if turn <= len(turns) else None


def _given(patterns: Sequence[str | Path]) -> Iterator[list[Scenario]]:
    yield load_scenarios(patterns)


def _own(definition: Mapping[str, Any], folder: Path) -> Iterator[list[Scenario]]:
    """The files a sweep names, then all shipped stories. Other patterns only choose among the shipped."""
    parts = [definition, *definition.get("parts", ())]
    patterns = dict.fromkeys(pattern for part in parts for pattern in part.get("scenarios") or ())
    bases = [Path.cwd(), *folder.resolve().parents[:3]]
    for pattern in patterns:
        if "/" in pattern or "\\" in pattern or pattern.endswith((".yaml", ".yml")):
            base = next((base for base in bases if (base / pattern).exists()), None)
            if base is not None:
                yield load_scenarios([pattern], base=base)
    yield load_scenarios()
