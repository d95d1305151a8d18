"""`memeval prompt MODEL DESIGN`: the prompt as the model sees it, and the fidelity ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from memeval.cli._common import emit, host_option, json_option, pairs, plain, server, typed
from memeval.errors import InputError
from memeval.owncode import own_code

if TYPE_CHECKING:
    from memeval.evaluation.fidelity import Fidelity
    from memeval.models.base import CallingMode

UNREADABLE = 1


@click.command(name="prompt")
@click.argument("model")
@click.argument("design")
@click.option(
    "--calling", metavar="MODE", help="native, prompted or constrained.  [default: the model's first]"
)
@click.option("--set", "given", multiple=True, metavar="K=V", help="A setting of the design; repeatable.")
@host_option
@json_option
def command(
    model: str, design: str, calling: str | None, given: tuple[str, ...], host: str | None, as_json: bool
) -> None:
    """Show the prompt as the model sees it, and what is wrong with it.

    MODEL and DESIGN are as in a sweep. The request holds a past call and its result. Ends with exit code 1
    where the model cannot read the design.
    """
    settings = {name: typed(value) for name, value in pairs(given).items()}
    mode, found = look(model, {design: settings} if settings else design, calling, server(host))
    if as_json:
        keys = ("status", "notes", "tool_tax", "prompt")
        emit(
            {"model": model, "design": design, "calling": mode, **{key: getattr(found, key) for key in keys}}
        )
    else:
        _print(mode, found)
    if found.status == "unreadable":
        click.get_current_context().exit(UNREADABLE)


def look(
    name: str, design: str | Mapping[str, Any], mode: str | None, host: str | None
) -> tuple[CallingMode, Fidelity]:
    """The ledger of a model and a design. Raises InputError for a mode that the model cannot do."""
    from memeval.designs.registry import open_design
    from memeval.errors import nearest
    from memeval.evaluation.fidelity import ledger
    from memeval.models.base import CallingMode, Options
    from memeval.models.registry import open_model

    made = open_design(design, Path.cwd())()
    with own_code(f"design {made.name!r}"):
        system, tools = made.system_prompt(), list(made.tools())
    if mode is not None and mode not in get_args(CallingMode):
        raise InputError(f"there is no calling mode {mode!r}{nearest(mode, get_args(CallingMode))}")
    model = open_model(name, host=host)
    try:
        _ = model.digest  # says that a model is absent in better words than its first request would
        modes = model.modes
        if not modes:
            raise InputError(f"{name} is no chat model; it cannot be given tools")
        chosen = next((known for known in modes if known == (mode or modes[0])), None)
        if chosen is None:
            raise InputError(
                f"{name} cannot do {mode} calling; it can do {', '.join(modes)}: give --calling {modes[-1]}"
            )
        return chosen, ledger(model, chosen, system, tools, Options())
    finally:
        model.close()


def _print(mode: str, found: Fidelity) -> None:
    if found.prompt is not None:
        click.echo(plain(found.prompt).rstrip() + "\n" + "─" * 60)
    click.echo(f"calling:  {mode}")
    click.echo(f"fidelity: {found.status}")
    for note in found.notes:
        click.echo(f"  - {plain(note)}")
    tax = "not known" if found.tool_tax is None else f"{found.tool_tax} prompt tokens"
    click.echo(f"tool tax: {tax}")
