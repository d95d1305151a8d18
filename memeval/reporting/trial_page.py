"""One trial as a page: everything that happened in it, why it was judged as it was, in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from memeval.reporting.one_trial import STAGES, UNEXPLAINED, Shown, laid_out
from memeval.reporting.style import ORDERS, SMOKE

_TEMPLATES = Path(__file__).parent / "templates"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
FOLDED = ("system", "thinking", "compacted")
"""Steps of which only the beginning is shown until a reader opens them."""
LABELS = {"shown": "put before it", "filler": "small talk"}
"""Steps that are called otherwise on the page."""
_DRAWN = ("neutral", "paraphrased", "some")
"""Levels of drawn accidents that are worth a word."""


def trial_page(data: Mapping[str, Any], out: Path) -> Path:
    """Write a trial, as `one_trial.whole` gave it, to a page that loads nothing and runs nothing; its path.

    Whatever a model wrote is escaped; signs that steer a terminal or turn text round are shown as `�`.
    """
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True)
    shown = list(laid_out(data))
    turns = [item for item in shown if item.row is not None]
    html = environment.get_template("trial.html.j2").render(
        css=(_TEMPLATES / "memeval" / "page.css").read_text(encoding="utf-8"),
        own_css=(_TEMPLATES / "trial.css").read_text(encoding="utf-8"),
        trial=data["trial"], title=data.get("title") or data["trial"]["scenario"],
        outcome=_outcome(data["trial"]), facts=list(_facts(data["trial"])), stages=STAGES,
        columns=(*STAGES, "phantom_save"), folded=FOLDED, labels=LABELS,
        smoke=SMOKE if data["trial"].get("smoke") else "", notes=list(_notes(data)),
        sessions=[(number, data["sessions"].get(number, ""), list(items)) for number, items in _by(shown)],
        turns=turns, mark={True: "✓", False: "✗", None: "–"}, kind={True: "yes", False: "no", None: "null"},
    )  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    # a model may write half a surrogate pair, which UTF-8 cannot hold
    plain = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", html.replace("\r\n", "\n"))
    out.write_bytes(plain.encode("utf-8", "backslashreplace"))
    return out


def _by(shown: list[Shown]) -> Iterator[tuple[int, Iterator[Shown]]]:
    return groupby(shown, key=lambda item: item.session)


def _outcome(trial: Mapping[str, Any]) -> tuple[str, bool | None]:
    """What became of the trial, and whether it passed."""
    if trial["outcome"] == "invalid":
        return f"invalid: {trial['invalid_reason']}", None
    if trial["outcome"] == "model_failure":
        return f"not passed, the model failed: {trial['failure']}", False
    if trial["passed"] is None:
        return "not judged", None
    where = f", broken at {trial['broken_at']}" if trial["broken_at"] else ""
    return ("passed" if trial["passed"] else f"not passed{where}"), trial["passed"]


def _facts(trial: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is to be known of a trial before its turns are read; what says nothing is left out."""
    surface = [trial[name] for name in ("shape", "names", "words") if trial[name] != "as_written"]
    drawn = {"names": "perturbed_names", "request": "request", "distractors": "distractors"}
    perturbed = [f"{name} {trial[key]}" for name, key in drawn.items() if trial[key] in _DRAWN]
    rows = {
        "scenario": f"{trial['scenario']}, of the family {trial['family']}",
        "tags": ", ".join(trial["tags"] or ()),
        "design": trial["variant"],
        "tools": ", ".join(trial["tools"] or ()) or "none",
        "tool order": ORDERS.get(trial["order"], trial["order"]),
        "surface": ", ".join(surface),
        "drawn for this repeat": ", ".join(perturbed),
        "model": trial["model"],
        "calling": trial["calling"],
        "fidelity": trial["fidelity"] if trial["fidelity"] != "readable" else "",
        "embedder": trial["embedder"],
        "repeat": f"{trial['repeat']} (seed {trial['seed']})",
        "attempt": str(trial["attempt"]) if trial["attempt"] > 1 else "",
        "calls": f"{trial['calls']} in {trial['rounds']} rounds",
        "tokens": f"{trial['prompt_tokens']} read, {trial['output_tokens']} written",
        "seconds": f"{trial['seconds_model']:.1f} of the model, {trial['seconds_harness']:.1f} of memeval",
        "seconds in after_turn": f"{trial['seconds_after_turn']:.2f}" if trial["seconds_after_turn"] else "",
        "hooks that did something": ", ".join(f"{n} {count}" for n, count in trial["hooks"].items()),
        "counted by the design": ", ".join(f"{n} {count}" for n, count in (trial["counts"] or {}).items()),
        "asked of the model by the design": _asked(trial),
        "judged by": f"scorer {trial['scorer']}",
        "started": trial["started_at"],
        "trial": trial["trial_key"],
    }
    yield from ((name, value) for name, value in rows.items() if value)


def _asked(trial: Mapping[str, Any]) -> str:
    if not trial["hook_requests"]:
        return ""
    return (
        f"requests: {trial['hook_requests']}, tokens: {trial['hook_tokens']}, {trial['seconds_hooks']:.1f} s"
    )


def _notes(data: Mapping[str, Any]) -> Iterator[str]:
    if not data["messages"]:
        yield "What was said was not kept with this run; the calls and verdicts were."
    elif data["unexplained"]:
        yield UNEXPLAINED[data["unexplained"]]
    if any(turn.get("moved") for turn in data["turns"]):
        yield (
            "Some verdicts would come out otherwise by today's stories and rules. The marks are those that "
            "the run counts, the reasons are today's; memeval rescore takes them over."
        )
