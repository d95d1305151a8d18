"""Known secrets are taken out; what only looks like one stays."""

from __future__ import annotations

import pytest

from memeval.designs.scrub import REDACTED, scrub


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnopqrstuvwx",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "xoxb-1234567890-abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "glpat-abcdefghij0123456789",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeKK",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_tokens_of_known_makers_are_redacted(secret: str) -> None:
    assert scrub(f"use {secret} here") == f"use {REDACTED} here"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("password: hunter22x", f"password: {REDACTED}"),
        ('{"api_key": "q1w2e3r4t5"}', f'{{"api_key": "{REDACTED}"}}'),
        ("OPENAI_API_KEY=abcd1234efgh", f"OPENAI_API_KEY={REDACTED}"),
        ("export AWS_SECRET_ACCESS_KEY='wJalrXUtnFEMI'", f"export AWS_SECRET_ACCESS_KEY='{REDACTED}'"),
        ("DB_PASSWORD=hunter2hunter2", f"DB_PASSWORD={REDACTED}"),
        ("client_secret: abcdefgh1234", f"client_secret: {REDACTED}"),
        ('{"CLIENT_SECRET":"abcdefgh1234"}', f'{{"CLIENT_SECRET":"{REDACTED}"}}'),
        (r"{\"refresh_token\": \"abcdefgh1234\"}", rf"{{\"refresh_token\": \"{REDACTED}\"}}"),
        ("Authorization: Bearer abcdefghijklmnop1234", f"Authorization: Bearer {REDACTED}"),
        ("postgres://ann:opensesame@db/x", f"postgres://{REDACTED}@db/x"),
    ],
)
def test_values_named_as_secrets_are_redacted_and_what_names_them_stays(text: str, clean: str) -> None:
    assert scrub(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "The user's preferred language is Elixir.",
        "Remember the password policy: it changes monthly.",
        "note-3f0c9a1b22d4",
        "The token ring network is old; the secret is in the sauce.",
        "Keep max_tokens: 100000 and the nontoken: untouched.",
        "risk-averse-and-slow-moving-people",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert scrub(text) == text
