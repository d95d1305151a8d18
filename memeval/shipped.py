"""The stories and notebooks that come with memeval, wherever it is installed."""

from __future__ import annotations

from pathlib import Path

from memeval.errors import InputError


def shipped(name: str) -> Path:
    """The folder `scenarios` or `notebooks`: inside an installed wheel, else at the repository's root."""
    package = Path(__file__).resolve().parent
    for folder in (package / "_shipped" / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise InputError(f"the folder {name!r} that comes with memeval is not beside {package}; install it again")
