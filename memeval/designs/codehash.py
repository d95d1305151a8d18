"""The hash of a person's own code: the same in every process, another one as soon as the code changes.

Bytecode and constants, because the source of a class from a notebook cell cannot be had, and the values that
the code uses: globals, defaults, what closures hold. All is written in one canonical form, without addresses
and in no order that changes from process to process.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any
from uuid import UUID

_PLAIN = (
    NoneType, EllipsisType, bool, int, float, complex, str, bytes, bytearray, range, date, time, timedelta,
    Decimal, Fraction, UUID, PurePath,
)  # fmt: skip
"""What says all of itself when it is written, and says it alike in every process."""


def code_hash(design: type) -> str:
    """A hash of a class, its bases, and all code of a person's own that it comes upon.

    Own is what lies in a package of the class or of one of its bases, or in no installed package. Code of
    memeval, of Python and of installed packages is named, not read. A module that is imported within a
    function is not followed.
    """
    packages = {_package(base.__module__) for base in design.__mro__} - {"memeval", "builtins"}
    return hashlib.sha256(_Writer(packages).text(design).encode()).hexdigest()


def canonical(value: object) -> str:
    """A value as text: a plain one as Python writes it, a set sorted, others by what they are made of."""
    return _Writer(frozenset()).text(value)


class _Writer:
    """Writes values; what was written before is named by its number, so that a circle ends."""

    def __init__(self, packages: AnySet[str], seen: Mapping[int, tuple[int, object]] | None = None) -> None:
        self.packages = packages
        self.seen = dict(seen or {})  # by identity, and kept, so that nothing else gets the same identity

    def text(self, thing: object) -> str:
        if isinstance(thing, _PLAIN):
            return repr(thing)
        if isinstance(thing, set | frozenset):
            # each by a writer of its own: numbers would follow the order in which the set happens to lie
            return f"set{sorted(_Writer(self.packages, self.seen).text(part) for part in thing)}"
        if not isinstance(thing, tuple | CodeType):  # these may be shared or not, as Python likes
            if id(thing) in self.seen:
                return f"again {self.seen[id(thing)][0]}"
            self.seen[id(thing)] = len(self.seen), thing
        name, parts = self._made_of(thing)
        if self._is_own(type(thing).__module__):
            parts = (type(thing), *parts)
        return f"{name}({', '.join(map(self.text, parts))})"

    def _made_of(self, thing: Any) -> tuple[str, Sequence[object]]:
        """What a thing is called, and its parts; of what nobody can take apart, the type's name and none."""
        name = type(thing).__name__
        match thing:
            case tuple() | list():
                return name, thing
            case dict() | MappingProxyType():
                return name, [part for pair in thing.items() for part in pair]
            case FunctionType():
                return thing.__qualname__, self._function(thing)
            case CodeType():
                return name, _code(thing)
            case type():
                return self._class(thing)
            case CellType():
                return name, _contents(thing)
            case MethodType():
                return name, (thing.__func__, thing.__self__)
            case property():
                return name, (thing.fget, thing.fset, thing.fdel)
            case staticmethod() | classmethod():
                return name, (thing.__func__,)
            case functools.partial() | functools.partialmethod():
                return name, (thing.func, thing.args, thing.keywords)
            case functools.cached_property():
                return name, (thing.func,)
            case re.Pattern():
                return name, (thing.pattern, thing.flags)
            case ModuleType():
                return name, (thing.__name__,)
            case BuiltinFunctionType() | MethodDescriptorType():
                return thing.__qualname__, ()
        if is_dataclass(thing):
            named = [(field.name, getattr(thing, field.name, None)) for field in fields(thing)]
            return name, named
        if self._is_own(type(thing).__module__):
            return name, (getattr(thing, "__dict__", None),)
        # such as the function that functools.cache was put around
        return name, (inspect.getattr_static(thing, "__wrapped__", None),)

    def _function(self, function: FunctionType) -> list[object]:
        """All of a person's own function; of memeval's what it was given; of another its name."""
        # not its __module__, which functools.wraps takes from another function
        module = function.__globals__.get("__name__")
        parts: list[object] = [vars(function).get("__wrapped__")]
        own = self._is_own(module)
        if own or _package(module) == "memeval":
            parts += [function.__defaults__, function.__kwdefaults__, function.__closure__]
        if not own:
            return [*parts, module]
        return [*parts, function.__code__, *self._used(_globals(function.__code__), function)]

    def _used(self, names: Sequence[str], function: FunctionType) -> Iterator[tuple[str, object]]:
        """The globals that a function names; of a module of a person's own, what it takes from there."""
        attributes = _names(function.__code__)
        left = [(name, function.__globals__) for name in names]
        modules: set[str] = set()
        while left:
            name, space = left.pop(0)
            if name not in space or name.startswith("__"):  # __file__ and __name__ say where it lies
                continue
            value = space[name]
            if not isinstance(value, ModuleType) or not self._is_own(value.__name__):
                yield name, value
            elif value.__name__ not in modules:
                modules.add(value.__name__)
                left += [(attribute, vars(value)) for attribute in attributes]

    def _class(self, thing: type) -> tuple[str, Sequence[object]]:
        if not self._is_own(thing.__module__):
            return f"{thing.__module__}.{thing.__qualname__}", ()
        members = sorted((name, member) for name, member in vars(thing).items() if _counts(name, member))
        return thing.__qualname__, (*thing.__bases__, *members)

    def _is_own(self, module: Any) -> bool:
        package = _package(module)
        if package in self.packages:
            return True
        if package == "memeval" or package in sys.stdlib_module_names:
            return False
        file = getattr(sys.modules.get(str(module)), "__file__", None)
        return file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)


def _package(module: Any) -> str:
    return str(module).partition(".")[0]


def _counts(name: str, member: object) -> bool:
    """Whether a member of a class is its author's; of what Python itself notes there, only methods are."""
    noted = name.startswith("__") and name.endswith("__")
    return not noted or isinstance(member, FunctionType | property | staticmethod | classmethod)


def _code(code: CodeType) -> Sequence[object]:
    arguments = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, code.co_exceptiontable, *arguments, *names, *code.co_consts


def _contents(cell: CellType) -> Sequence[object]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # nothing was put in yet
        return ()


def _inner(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of all that is written within it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _inner(const)


def _names(code: CodeType) -> list[str]:
    """All names in a code, of globals and of attributes, each once."""
    return list(dict.fromkeys(name for part in _inner(code) for name in part.co_names))


def _globals(code: CodeType) -> list[str]:
    """The names that a code looks up as globals, each once; an attribute may be called as a global is."""
    looked_up = (
        step.argval
        for part in _inner(code)
        for step in dis.get_instructions(part)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )
    return list(dict.fromkeys(looked_up))
