"""`memeval doctor`: what is here, what is missing, and the exact command that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memeval.cli._common import emit, host_option, json_option, plain, server

if TYPE_CHECKING:
    from memeval.cli._checks import Check, Wanted

SOMETHING_TO_MEND = 1
SIGNS = {"ok": "✓", "note": "·", "mend": "✗"}


@click.command(name="doctor")
@click.option("--model", "models", multiple=True, metavar="NAME", help="A model you want to use; repeatable.")
@click.option("--sweep", metavar="SWEEP", help="Look at everything that a sweep wants.")
@host_option
@json_option
def command(models: tuple[str, ...], sweep: str | None, host: str | None, as_json: bool) -> None:
    """Say what is here, what is missing, and what mends it.

    Models named with --model or wanted by --sweep are asked for one token, to see that they work and can read
    their tools. An Ollama server that is not there counts only if a model of it is wanted. Ends with exit
    code 1 if there is something to mend.
    """
    found: list[Check] = []
    for check in examine(wants(models, sweep), server(host)):
        found.append(check)
        if not as_json:
            _print(check)
    broken = [check for check in found if check.status == "mend"]
    if as_json:
        emit({"ok": not broken, "checks": [asdict(check) for check in found]})
    else:
        click.echo(f"\n{len(broken)} to mend" if broken else "\nNothing to mend.")
    if broken:
        click.get_current_context().exit(SOMETHING_TO_MEND)


def examine(wanted: Wanted, host: str | None) -> Iterator[Check]:
    """All checks, one after the other."""
    from memeval.cli import _checks
    from memeval.models.server import Server

    yield _checks.python()
    yield _checks.bundled(wanted)
    yield _checks.fts5()
    yield _checks.kernel()
    http = Server(host)
    try:
        check, there = _checks.ollama(http, wanted)
    finally:
        http.close()
    yield check
    yield from _checks.models(wanted, there, host)


def wants(models: tuple[str, ...], sweep: str | None) -> Wanted:
    """What is to be looked at. Raises InputError for a sweep that is wrong."""
    from memeval.cli._checks import Wanted
    from memeval.embedding import embedder_names

    wanted = Wanted(named=bool(models or sweep))
    for name in models:
        if name in embedder_names():
            wanted.embedders.append(name)
        else:
            wanted.chat.setdefault(name, {})
    if sweep is not None:
        _from_sweep(sweep, wanted)
    return wanted


def _from_sweep(name: str, wanted: Wanted) -> None:
    from memeval.evaluation.sweep import find_sweep, plan, read_sweep
    from memeval.settings import load_settings
    from memeval.yamlfile import read_yaml

    path: Path = find_sweep(name)
    data, _ = read_yaml(path)
    if isinstance(data, dict) and "retrieval" in data:
        from memeval.retrieval.sweep import load_sweep

        wanted.embedders += [entry.name for entry in load_sweep(path).embedders]
        return
    described, base = read_sweep(path)
    wanted.options = described.model_options()
    for planned in plan(described, base, load_settings().embedder):
        spec = planned.spec
        designs = wanted.chat.setdefault(spec.model, {}).setdefault(spec.calling, [])
        if spec.design.variant not in {known.variant for known in designs}:
            designs.append(spec.design)
        wanted.embedders.append(spec.embedder.name)


def _print(check: Check) -> None:
    click.echo(f"{SIGNS[check.status]} {check.name}: {plain(check.found)}")
    for line in check.mend:
        click.echo(f"      {plain(line)}")
