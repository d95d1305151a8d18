"""The front page: what each report found, its first figure, and where the numbers come from, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memeval.errors import InputError
from memeval.reporting.show import HEADLINE

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class _Part:
    title: str
    link: str
    headline: tuple[str, ...]
    picture: str = ""
    alt: str = ""
    width: int = 0


@dataclass(frozen=True, slots=True)
class _Provenance:
    name: str
    rows: tuple[tuple[str, str], ...]


def combine(
    pages: Sequence[Path],
    out: Path | None = None,
    *,
    manifests: Mapping[str, Mapping[str, Any]] | None = None,
    title: str = "memeval: what was found",
) -> Path:
    """Write `index.html` beside the reports (or to `out`) and give its path.

    `pages` are what `report` gave. From the executed notebook beside each it takes the headline sentences
    and the first figure. `manifests` are shown as tables by name: their plain values, nothing nested.
    The page loads nothing: pictures stand in it.
    """
    from jinja2 import Environment, FileSystemLoader

    if not pages:
        raise InputError("There is no report to combine: give the pages that `memeval report` wrote.")
    target = out or Path(os.path.commonpath([page.resolve().parent for page in pages])) / "index.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True)
    html = environment.get_template("index.html.j2").render(
        title=title,
        css=(_TEMPLATES / "memeval" / "page.css").read_text(encoding="utf-8"),
        reports=[_part(page, target.parent) for page in pages],
        provenance=[_Provenance(name, _plain(manifest)) for name, manifest in (manifests or {}).items()],
    )
    target.write_text(html, encoding="utf-8")
    return target


def _part(page: Path, home: Path) -> _Part:
    import nbformat

    notebook = nbformat.read(page.with_suffix(".ipynb"), as_version=4)  # type: ignore[no-untyped-call]
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [o["data"]["text/plain"] for o in outputs if o.get("metadata", {}).get(HEADLINE)]
    shown = [o for o in outputs if "image/png" in o.get("data", {})]
    headline = tuple(line for text in said for line in text.splitlines() if line)
    title = notebook.metadata.get("title", page.stem)
    link = quote(Path(os.path.relpath(page.resolve(), home.resolve())).as_posix())
    if not shown:
        return _Part(title, link, headline)
    about = shown[0]["metadata"].get("image/png", {})
    picture = shown[0]["data"]["image/png"].strip()
    return _Part(title, link, headline, picture, about.get("alt", ""), int(about.get("width", 900)))


def _plain(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """A manifest's values as text; short lists are joined, anything nested is counted, empty left out."""
    rows = []
    for name, value in manifest.items():
        if value in ("", None) or value == [] or value == {}:
            continue
        if isinstance(value, (dict, list)) and any(isinstance(item, (dict, list)) for item in _items(value)):
            text = f"{len(value)}, listed in manifest.json"
        elif isinstance(value, dict):
            text = ", ".join(f"{key} {item}" for key, item in value.items())
        elif isinstance(value, list):
            text = ", ".join(map(str, value))
        else:
            text = value if isinstance(value, str) else json.dumps(value)
        rows.append((name.replace("_", " "), text if len(text) <= 300 else f"{text[:300]} …"))
    return tuple(rows)


def _items(value: dict[str, Any] | list[Any]) -> Sequence[Any]:
    return list(value.values()) if isinstance(value, dict) else value
