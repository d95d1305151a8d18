"""How a notebook shows things, so that its HTML can be read by everyone and runs nothing."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# A display of text, HTML or a picture, as the notebook protocol names its parts.
Bundle = dict[str, Any]
HEADLINE = "memeval_headline"
RATES = ("rate", "right", "base", "lo", "hi", "icc")
"""Columns that are empty where a rate is of too few families to say."""
DPI = 160


def png(figure: Figure) -> bytes:
    """The figure as a picture; the same bytes each time, so that a report can be compared."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    return file.getvalue()


def _publish(data: Bundle, metadata: Bundle | None = None) -> None:
    from IPython.display import publish_display_data

    publish_display_data(data, metadata=metadata or {})  # type: ignore[no-untyped-call]  # IPython has no types


def show(figure: Figure, alt: str, numbers: pd.DataFrame | None = None) -> None:
    """Display a figure with its text alternative, and below it its numbers as a table."""
    picture = base64.b64encode(png(figure)).decode("ascii")
    width = round(figure.get_figwidth() * 96)
    _publish({"image/png": picture, "text/plain": alt}, metadata={"image/png": {"alt": alt, "width": width}})
    if numbers is not None:
        show_table(numbers, summary="The numbers of this figure")


def show_table(numbers: pd.DataFrame, *, summary: str = "") -> None:
    """Display a table, escaped; folded away behind `summary` if there is one."""
    from markupsafe import escape

    numbers = _told(numbers)
    html = table_html(numbers)
    if summary:
        html = f"<details><summary>{escape(summary)} ({len(numbers)} rows)</summary>{html}</details>"
    _publish({"text/html": html, "text/plain": numbers.to_string()})


def table_html(numbers: pd.DataFrame) -> str:
    """A frame as an HTML table: everything escaped, rates to three places, constant columns left out.

    Rates of fewer than five families are empty: of those there are only counts.
    """
    frame = _told(numbers).drop(columns=[name for name in ("few", "level") if name in numbers])
    html: str = frame.to_html(index=False, escape=True, border=0, na_rep="", float_format="{:.3f}".format)
    return f'<div class="table">{html}</div>'


def _told(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers without rates that are of too few families to say."""
    if "few" not in numbers:
        return numbers
    few = numbers["few"].astype(bool)
    return numbers.assign(**{name: numbers[name].mask(few) for name in RATES if name in numbers})


def say(text: str, *, headline: bool = False) -> None:
    """Display sentences, one a line, as plain escaped text. A headline also opens the report's front page."""
    from markupsafe import escape

    kind = "headline" if headline else "said"
    html = "".join(f'<p class="{kind}">{escape(line)}</p>' for line in text.splitlines() if line)
    metadata: dict[str, Any] = {HEADLINE: True} if headline else {}
    _publish({"text/html": html, "text/plain": text}, metadata)
