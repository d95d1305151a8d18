"""Running what a person wrote themselves: a bug in it is theirs, and is named with its file and line."""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from memeval.errors import HarnessError, InputError, MemevalError


@contextmanager
def own_code(what: str) -> Iterator[None]:
    """Turns whatever the code inside raises into a HarnessError: `<what> raised <error> (<file>, line <n>)`.

    What memeval raises on purpose passes through.
    """
    try:
        yield
    except MemevalError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        file, line = frame.filename, frame.lineno
        if isinstance(error, SyntaxError) and error.filename:
            file, line = error.filename, error.lineno
        raise HarnessError(f"{what} raised {type(error).__name__}: {error} ({file}, line {line})") from error


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path, anew each time. Raises InputError if there is none, HarnessError."""
    path = path.resolve()
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    module = ModuleType(f"memeval_own_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    with own_code(f"{path.name}, when imported,"):
        # compiled here: the import system's bytecode cache misses an edit within the same second
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    return module
