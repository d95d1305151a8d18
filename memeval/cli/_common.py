"""What commands share: options, tables, JSON, progress."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memeval.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from memeval.evaluation.recorder import TrialResult

F = TypeVar("F", bound=Callable[..., Any])

MARKS: Mapping[bool | None, str] = {True: "✓", False: "✗", None: "–"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

json_option: Callable[[F], F] = click.option("--json", "as_json", is_flag=True, help="Print JSON only.")
host_option: Callable[[F], F] = click.option(
    "--host", metavar="URL", help="Address of the Ollama server.  [default: OLLAMA_HOST]"
)
set_option: Callable[[F], F] = click.option("--set", "given", multiple=True, metavar="K=V")


def server(host: str | None) -> str | None:
    """The address a command is to use: the option, else the settings', else None (the environment's)."""
    if host:
        return host
    from memeval.settings import load_settings

    return load_settings().ollama_host or None


def pairs(given: Sequence[str]) -> dict[str, str]:
    """`k=v` arguments as a mapping. Raises InputError."""
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise InputError(f"--set {item!r} is not of the form name=value")
        if name in found:
            raise InputError(f"--set gives {name!r} twice")
        found[name] = value
    return found


def plain(text: Any) -> str:
    """Text that cannot steer a terminal: control and direction signs are shown as `�`."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text).replace("\r\n", "\n"))


def short(text: Any, width: int = 70) -> str:
    """Text as one line of at most `width` signs."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def emit(data: Any) -> None:
    """Print data as JSON: null for what is not a number, UTF-8 as it is."""
    click.echo(json.dumps(_clean(data), indent=2, ensure_ascii=False, allow_nan=False, default=str))


def _clean(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, str | int | bool | None):
        return value
    if isinstance(value, Iterable):
        return [_clean(item) for item in value]
    return value


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as plain data, null where there is nothing."""
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", date_format="iso"))
    return rows


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Print a table. A column whose name starts with `>` is set to the right; nothing is read as markup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        box=SIMPLE_HEAD,
        title=Text(title) if title else None,
        title_justify="left",
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for name in columns:
        right = name.startswith(">")  # numbers stay whole; on a narrow terminal the names are folded
        drawn.add_column(
            Text(name.lstrip(">")), justify="right" if right else "left", no_wrap=right, overflow="fold"
        )
    for row in rows:
        drawn.add_row(*[Text("" if cell is None else plain(cell)) for cell in row])
    console().print(drawn)


def console() -> Any:
    """Rich's console on today's stdout; outside a terminal as wide as need be, for files and pipes."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 240
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class TrialProgress:
    """Shows on stderr how far a run is: a bar on a terminal, elsewhere a line for every tenth."""

    def __init__(self) -> None:
        self.done = self.total = 0
        self._bar: Any = None
        self._invalid = self._begun = self._said = 0
        self._start = time.monotonic()

    def __call__(self, done: int, total: int, result: TrialResult | None) -> None:
        """The runner's callback."""
        self.done, self.total = done, total
        if result is None:
            self._begun, self._start = done, time.monotonic()
        self._invalid += result is not None and result.trial.outcome == "invalid"
        if sys.stderr.isatty():
            self._draw(done, total, result)
        else:
            self._line(done, total)

    def _draw(self, done: int, total: int, result: TrialResult | None) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=total, initial=self._begun, unit="trial", file=sys.stderr, smoothing=0.05)
        self._bar.update(done - self._bar.n)
        if result is not None:
            self._bar.set_postfix_str(short(result.trial.scenario, 30), refresh=False)

    def _line(self, done: int, total: int) -> None:
        tenth = 10 * done // total if total else 10
        if tenth == self._said and done != self._begun:
            return
        self._said = tenth
        spent, new = time.monotonic() - self._start, done - self._begun
        left = f", about {duration(spent / new * (total - done))} left" if new and done < total else ""
        invalid = f", {self._invalid} invalid" if self._invalid else ""
        click.echo(f"{done} of {total} trials{invalid}{left}", err=True)

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()


def typed(value: str) -> Any:
    """A setting as a sweep file would hold it: numbers and truth values are not texts."""
    try:
        return json.loads(value)
    except ValueError:
        return value
