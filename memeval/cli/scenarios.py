"""`memeval scenarios list`, `validate` and `import`: stories as data, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import TrialProgress, emit, host_option, json_option, plain, server, short, table
from memeval.cli.scenarios_import import import_
from memeval.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from memeval.evaluation.recorder import TrialResult
    from memeval.memory.inmemory import InMemoryStore
    from memeval.models.base import CallingMode, ChatModel
    from memeval.scenarios.corpus import Count, Pair, Question
    from memeval.scenarios.lint import Finding
    from memeval.scenarios.schema import Scenario

SHOWN = 20
"""Notes that are listed, at most; `--json` has all."""


@click.group(name="scenarios")
def command() -> None:
    """List, check and import stories."""


command.add_command(import_)


@command.command(name="list")
@click.argument("patterns", nargs=-1, metavar="[PATTERN]...")
@json_option
def list_(patterns: tuple[str, ...], as_json: bool) -> None:
    """List stories.

    PATTERN is as in a sweep: tag:NAME, family:NAME, an id, a glob over ids, a file or a folder. Without
    one, all stories that come with memeval.
    """
    from memeval.scenarios.loader import load_scenarios

    data = [describe(scenario) for scenario in load_scenarios(patterns or ("*",))]
    if as_json:
        emit(data)
        return
    rows = [
        [s["scenario"], s["family"], s["sessions"], s["turns"], " ".join(s["tags"]), short(s["title"])]
        for s in data
    ]
    table(["scenario", "family", ">sessions", ">turns", "tags", "title"], rows)
    click.echo(f"{len(data)} scenarios of {len({s['family'] for s in data})} families")


@command.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option(
    "--pairs", type=click.IntRange(min=0), default=5, show_default=True, metavar="N",
    help="How many pairs of most alike texts are shown.",
)  # fmt: skip
@click.option("--model", metavar="MODEL", help="Ask this model every question without memory.")
@click.option(
    "--calling", type=click.Choice(["native", "prompted", "constrained"]),
    help="Its calling mode.  [default: the first that it can do]",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
    help="How often it is asked each question.",
)  # fmt: skip
@host_option
@json_option
def validate(
    paths: tuple[Path, ...], pairs: int, model: str | None, calling: CallingMode | None, repeats: int,
    host: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Check stories, count them and compare them.

    PATH is a file or a folder; without one, the stories that come with memeval. Errors end with exit code 2.
    Two texts are as alike as the share of their three-letter sequences that both have.

    With --model every question of the stories is put to a model that was told nothing. A value that it names
    all the same is no sign of memory: its fact is to be marked `guessable: true`. No file is changed.
    """
    from memeval.scenarios.corpus import asked_alone, counts, nearest_pairs, never_asked, read_all
    from memeval.scenarios.lint import lint
    from memeval.shipped import shipped

    scenarios, errors = read_all(paths or [shipped("scenarios")])
    findings, notes = lint(scenarios), never_asked(scenarios)
    counted, near = counts(scenarios), nearest_pairs(scenarios, pairs)
    known = _known(asked_alone(scenarios), model, calling, repeats, host) if model else None
    if as_json:
        told: dict[str, Any] = {"scenarios": len(scenarios), "errors": errors}
        told |= {"findings": [asdict(finding) for finding in findings], "notes": [asdict(n) for n in notes]}
        told |= {"counts": [asdict(count) for count in counted], "pairs": [asdict(pair) for pair in near]}
        emit(told if known is None else told | {"known": known})
    else:
        for line in [*errors, *map(str, findings)]:
            click.echo(plain(line))
        _print_counts(counted)
        _print_pairs(near)
        _print_notes(notes)
        if known is not None:
            _print_known(known)
        click.echo(f"\n{len(scenarios)} scenarios, {len(errors)} errors, {len(findings)} findings")
    if errors:
        raise InputError(
            f"{len(errors)} of the story files or ids are wrong; each is named above with its line"
        )


def describe(scenario: Scenario) -> dict[str, Any]:
    """A story as data, expectations included."""
    return {
        "scenario": scenario.scenario,
        "family": scenario.family,
        "title": scenario.title,
        "tags": scenario.tags,
        "file": str(scenario.source or ""),
        "line": scenario.line("scenario"),
        "sessions": len(scenario.sessions),
        "turns": sum(len(session.turns) for session in scenario.sessions),
        "facts": {name: fact.model_dump(mode="json") for name, fact in scenario.facts.items()},
        "intents": sorted({t.expect.intent for s in scenario.sessions for t in s.turns if t.expect}),
    }


# The stories as a whole


def _print_counts(counted: Sequence[Count]) -> None:
    """A row a folder, and all of them together last."""
    rows = [
        [c.folder or "all", c.stories, c.families, c.dev, c.test, c.turns, _most(c.intents), _most(c.tags)]
        for c in (counted if len(counted) > 2 else counted[:1])
    ]
    columns = [
        "folder",
        ">stories",
        ">families",
        ">dev",
        ">test",
        ">turns",
        "turns by intent",
        "stories by tag",
    ]
    table(columns, rows, title="Stories; dev and test count families")


def _most(numbers: Mapping[str, int], most: int = 4) -> str:
    named = [f"{name} {count}" for name, count in list(numbers.items())[:most]]
    return ", ".join(named + [f"{len(numbers) - most} more"] * (len(numbers) > most))


def _print_pairs(near: Sequence[Pair]) -> None:
    if near:
        click.echo("\nMost alike in different families, by three-letter sequences that both texts have:")
    for pair in near:
        for sign, said in ((f"{pair.likeness:.2f}", pair.first), ("", pair.second)):
            place = f"{said.file.name if said.file else '?'}:{said.line or '?'}"
            click.echo(f"  {sign:4}  {short(said.text, 90)}  ({said.scenario}, {place})")


def _print_notes(notes: Sequence[Finding]) -> None:
    if notes:
        click.echo(f"\nFacts to be kept that no later turn asks for: {len(notes)}. That is allowed.")
    for note in notes[:SHOWN]:
        click.echo("  " + plain(f"{note.file or '?'}:{note.line or '?'}: {note.scenario}: {note.message}"))
    if len(notes) > SHOWN:
        click.echo(f"  and {len(notes) - SHOWN} more; --json lists them")


# What a model knows without memory


def _known(
    questions: Sequence[Question], name: str, mode: CallingMode | None, repeats: int, host: str | None
) -> dict[str, Any]:
    """What a model names without memory: a row for each fact that it named or that is marked guessable."""
    from memeval.models.registry import open_model

    model, progress = open_model(name, host=server(host)), TrialProgress()
    try:
        mode = mode or model.modes[0]
        if mode not in model.modes:
            raise InputError(f"{name} cannot do {mode} calling; it can do {', '.join(model.modes)}")
        rows: list[dict[str, Any]] = []
        failed = 0
        for done, question in enumerate(questions):
            results = []
            for repeat in range(repeats):
                results.append(_asked(question, model, mode, repeat))
                progress(done * repeats + repeat + 1, repeats * len(questions), results[-1])
            failed += sum(result.trial.outcome == "model_failure" for result in results)
            rows += _rows(question, results)
        about = {"model": name, "digest": model.digest, "smoke": model.smoke, "calling": mode}
    finally:
        progress.close()
        model.close()
    asked = {"repeats": repeats, "questions": len(questions), "facts_asked": len(rows), "failed": failed}
    return about | asked | {"facts": [row for row in rows if row["named"] or row["guessable"]]}


def _asked(question: Question, model: ChatModel, mode: CallingMode, repeat: int) -> TrialResult:
    """A trial of the design `none`; infrastructure trouble ends the command."""
    from memeval.designs import open_design
    from memeval.embedding import open_embedder
    from memeval.evaluation.sweep import digest, trial_seed
    from memeval.evaluation.trial import Trial, run_trial
    from memeval.memory.inmemory import InMemoryStore
    from memeval.models.base import Options

    def open_store(user: str) -> InMemoryStore:
        return InMemoryStore(user, open_embedder("hash", cache=None))

    story = question.story
    seed = trial_seed(0, story.scenario, repeat)
    trial = Trial(
        key=digest(model.digest, mode, story.shown(), seed), cell="none", scenario=story,
        design=open_design("none"), calling=mode, options=Options(), repeat=repeat, seed=seed,
    )  # fmt: skip
    result = run_trial(trial, model, open_store)
    if result.trial.outcome == "invalid":
        reason = result.trial.invalid_reason.partition(": ")[2]
        raise InfrastructureError(f"{model.name} could not be asked about {story.scenario}: {reason}")
    return result


def _rows(question: Question, results: Sequence[TrialResult]) -> list[dict[str, Any]]:
    """A row a fact: how often its value was named, and a reply that names it. A reply cut off counts too."""
    from memeval.evaluation import language

    first, rows = question.places[0], []
    said = [[m["content"] for m in r.transcript.messages if m["role"] == "assistant"] for r in results]
    replies = ["\n".join(parts) for parts in said]
    for name, fact in question.facts.items():
        naming = [reply for reply in replies if language.names(reply, fact.values)]
        naming = [reply for reply in naming if not language.echoes(reply, first.text)]
        row = {
            "scenarios": [place.scenario for place in question.places],
            "file": first.file, "line": first.line, "question": first.text,
            "fact": name, "values": fact.values, "guessable": fact.guessable,
            "named": len(naming), "asked": len(replies), "reply": (naming or replies)[0],
        }  # fmt: skip
        rows.append(row)
    return rows


def _print_known(known: Mapping[str, Any]) -> None:
    """The facts that are to be marked first, then those that are."""
    asked = f"{known['questions']} questions about {known['facts_asked']} facts, each {known['repeats']}x"
    click.echo(plain(f"\n{known['model']} ({known['calling']}), told nothing: {asked}"))
    if known["smoke"]:
        click.echo("Bundled and scripted models are a smoke test, not a measurement of your model.")
    if known["failed"]:
        click.echo(f"{known['failed']} replies were unusable or cut off; what they name counts all the same.")
    new = [fact for fact in known["facts"] if not fact["guessable"]]
    marked = [fact for fact in known["facts"] if fact["guessable"]]
    advice = "; mark them `guessable: true`, or give them a rarer value" if new else "."
    click.echo(f"\nFacts named without memory: {len(new)}{advice}")
    _print_facts("", new)
    _print_facts("Named, and marked `guessable: true`:", [fact for fact in marked if fact["named"]])
    _print_facts("Marked `guessable: true`, and not named:", [fact for fact in marked if not fact["named"]])


def _print_facts(title: str, facts: Sequence[Mapping[str, Any]]) -> None:
    if not facts:
        return
    rows = []
    for fact in facts:
        story, *more = fact["scenarios"]
        place = f"{story} and {len(more)} more" if more else story
        named = f"{fact['named']} of {fact['asked']}"
        rows.append([place, fact["line"], fact["fact"], fact["values"][0], named, short(fact["reply"], 60)])
    table(["scenario", ">line", "fact", "value", ">named", "reply"], rows, title=title and f"\n{title}")
