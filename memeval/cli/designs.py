"""`memeval designs list`: the designs a sweep may name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memeval.cli._common import emit, json_option, short, table
from memeval.errors import InputError
from memeval.owncode import own_code

if TYPE_CHECKING:
    from memeval.designs.registry import DesignSpec


@click.group(name="designs")
def command() -> None:
    """List memory tool designs."""


@command.command(name="list")
@click.argument("names", nargs=-1, metavar="[NAME | FILE.py]...")
@json_option
def list_(names: tuple[str, ...], as_json: bool) -> None:
    """List designs with their tools and settings.

    Without NAME the built-in ones. FILE.py means the designs in a file of your own, FILE.py:Class one of
    them.
    """
    from memeval.designs.registry import design_names, open_design

    specs = [spec for name in names for spec in _in_file(name)] if names else []
    specs = specs or [open_design(name) for name in design_names()]
    data = []
    for spec in specs:
        with own_code(f"design {spec.design.name!r}"):
            data.append(describe(spec))
    if as_json:
        emit(data)
        return
    for design in data:
        click.echo(f"{design['name']}: {design['title'] or 'no title'}")
        tools = [
            [t["name"], t["effect"], ", ".join(t["parameters"]), short(t["description"])]
            for t in design["tools"]
        ]
        if tools:
            table(["tool", "effect", "parameters", "description"], tools)
            click.echo(f"description tokens: {design['description_tokens']}")
        settings = [
            [s["name"], s["default"], ", ".join(map(str, s["choices"]))] for s in design["settings"]
        ]  # fmt: skip
        if settings:
            table(["setting", "default", "choices"], settings)
        click.echo()


def describe(spec: DesignSpec) -> dict[str, Any]:
    """A design as data."""
    design = spec()
    tools = list(design.tools())
    choices = getattr(spec.design, "choices", {})
    return {
        "name": spec.design.name,
        "title": spec.design.title,
        "system_prompt": design.system_prompt(),
        "tools": [
            {
                "name": tool.name, "effect": tool.effect, "description": tool.description,
                "parameters": list(tool.parameters.get("properties", {})), "schema": tool.schema(),
            }
            for tool in tools
        ],
        "serves": sorted(design.serves()),
        "settings": [
            {"name": name, "default": default, "choices": list(choices.get(name, ()))}
            for name, default in spec.design.defaults.items()
        ],
        "description_tokens": sum(len(re.findall(r"\w+|[^\w\s]", tool.description)) for tool in tools),
    }  # fmt: skip


def _in_file(name: str) -> list[DesignSpec]:
    """The design of a name, or all that a file defines."""
    from memeval.designs.registry import open_design

    if not name.endswith(".py"):
        return [open_design(name, Path.cwd())]
    import ast

    path = Path(name)
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {error}") from None
    except SyntaxError as error:
        raise InputError(f"{name}:{error.lineno}: not Python: {error.msg}") from None
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    found = []
    for cls in classes:
        try:
            found.append(open_design(f"{name}:{cls}", Path.cwd()))
        except InputError:
            continue  # a class that is no design
    if not found:
        raise InputError(f"{name} defines no design; a design is a subclass of memeval.MemoryDesign")
    return found
