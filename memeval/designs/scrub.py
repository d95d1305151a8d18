"""Known secrets taken out of text: what a tool gives back, or what is about to be stored."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# Forms that are secrets whatever stands around them, then values that are named as one.
_SECRETS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{20,}
    | \bgithub_pat_[A-Za-z0-9_]{20,}
    | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[abprs]-[A-Za-z0-9-]{10,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[0-9A-Za-z_-]{30,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}
    | (?<=://)[^\s/:@]+:[^\s/@]+(?=@)
    """,
    re.VERBOSE | re.DOTALL,
)
# `_` may stand before the name, as in OPENAI_API_KEY, but no letter or digit.
_NAMED = re.compile(
    r"""(?ix)(?<![^\W_])((?:api[ _-]?key|access[ _-]?(?:key|token)|auth[ _-]?token|secret(?:[ _-]?key)?
        |password|passwd|token)\\?["']?\s*(?:=|:)\s*\\?["']?)([^\s"'\\,;]{6,})"""
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)([A-Za-z0-9._~+/-]{16,}=*)")


def scrub(text: str) -> str:
    """The text with private keys, tokens of known makers and values named as secrets replaced."""
    text = _SECRETS.sub(REDACTED, text)
    text = _NAMED.sub(rf"\1{REDACTED}", text)
    return _BEARER.sub(rf"\1{REDACTED}", text)
