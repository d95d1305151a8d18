"""Designs by name: the built-in ones, those registered in a notebook, those in a file of your own."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any, TypeVar

from memeval.designs.base import MemoryDesign
from memeval.designs.baselines import FullContext, NoMemory
from memeval.designs.codehash import canonical, code_hash
from memeval.designs.compact_tool import CompactTool
from memeval.designs.harness_runs import HarnessRuns
from memeval.designs.local2 import Local2Dual, Local2Single
from memeval.designs.local2_later import Local2Search, Local2Shipped, Local2Tiers
from memeval.designs.memex import Memex
from memeval.designs.oxydra import OxydraNotes, OxydraTags
from memeval.designs.self_editing import SelfEditing
from memeval.designs.surface import Surface
from memeval.designs.synthorg import SynthOrgContext, SynthOrgTools, SynthOrgTriad
from memeval.errors import InputError, nearest
from memeval.owncode import import_file, own_code

D = TypeVar("D", bound=type[MemoryDesign])
GROUP = "memeval.designs"
"""The entry-point group in which a package offers designs: `sticky = "my_package.designs:Sticky"`."""

_BUILT_IN: tuple[type[MemoryDesign], ...] = (
    NoMemory, FullContext,
    Local2Dual, Local2Single, Local2Shipped, Local2Search, Local2Tiers,
    OxydraNotes, OxydraTags,
    SynthOrgTriad, SynthOrgTools, SynthOrgContext, SelfEditing,
    Memex, CompactTool,
    HarnessRuns,
)  # fmt: skip
_DESIGNS: dict[str, type[MemoryDesign]] = {design.name: design for design in _BUILT_IN}


def register(design: D) -> D:
    """Make a design known by its `name`, so that a sweep can list it. Usable as a decorator.

    Registering a name again replaces the design, as a notebook cell run twice should; a built-in name
    is refused.
    """
    _checked_design(design, "what register was given")
    if not re.fullmatch(r"[A-Za-z_][\w-]*", design.name):
        raise InputError(f"{design.__name__}.name is {design.name!r}; give it a name such as 'my_design'")
    _check_name(design)
    _DESIGNS[design.name] = design
    return design


def design_names() -> list[str]:
    """All names a sweep may list: the built-in ones, those registered, those of installed packages."""
    return sorted({*_DESIGNS, *(point.name for point in _installed())})


def _installed() -> EntryPoints:
    """Designs that other packages offer under `[project.entry-points."memeval.designs"]`."""
    return entry_points(group=GROUP)


@dataclass(frozen=True, slots=True)
class DesignSpec:
    """A design class with settings and a surface, ready to be made anew for every trial."""

    design: type[MemoryDesign]
    settings: Mapping[str, Any]
    surface: Surface = Surface()  # noqa: RUF009 - frozen

    def __call__(self) -> MemoryDesign:
        """A fresh instance."""
        with own_code(f"design {self.design.name!r}, when made,"):
            return self.surface.on(self.design(**self.settings))

    @property
    def variant(self) -> str:
        """The name with what differs from its defaults: `local2_dual write_path=tool [split]`."""
        own = [f"{k}={v}" for k, v in sorted(self.settings.items()) if self.design.defaults.get(k) != v]
        surface = [f"[{self.surface.label}]"] if self.surface.label else []
        return " ".join([self.design.name, *own, *surface])

    def behind(self, surface: Surface) -> DesignSpec:
        """The same behind another surface, of which only what changes something is kept."""
        plain = replace(self, surface=Surface())
        with own_code(f"design {self.design.name!r}"):
            return replace(self, surface=surface.needed(plain()) if surface.label else surface)

    @property
    def user_written(self) -> bool:
        """Whether the design's code is a person's own."""
        return not self.design.__module__.startswith("memeval.")

    def fingerprint(self) -> str:
        """Changes with anything the model is shown and, for a person's own design, with its code."""
        design = self()
        with own_code(f"design {self.design.name!r}"):
            prompt, tools = design.system_prompt(), [tool.schema() for tool in design.tools()]
        shown: dict[str, Any] = {
            "design": self.design.name,
            "settings": {k: canonical(v) for k, v in sorted(design.settings.items())},
            "prompt": prompt,
            "tools": tools,
            "code": code_hash(self.design) if self.user_written else "",
        }
        if self.surface.label:
            shown["surface"] = self.surface.label
        if self.design.version > 1:  # the first version is not written, so that finished trials stay known
            shown["version"] = self.design.version
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]


def open_design(spec: str | Mapping[str, Any], base: Path | None = None) -> DesignSpec:
    """A design as a sweep writes it: `name`, `{name: {setting: value}}` or `file.py:Class`.

    Files are looked up beside `base`. Raises InputError for an unknown name, class or setting.
    """
    if isinstance(spec, str):
        return DesignSpec(_find(spec, base), {})
    if len(spec) != 1:
        raise InputError(f"a design is a name or one {{name: settings}}, not {dict(spec)!r}")
    ((name, settings),) = spec.items()
    design = _find(name, base)
    for key, value in (settings or {}).items():
        if key not in design.defaults:
            raise InputError(f"design {name!r} has no setting {key!r}{nearest(key, design.defaults)}")
        choices = getattr(design, "choices", {}).get(key)
        if choices and value not in choices:
            raise InputError(f"design {name!r}: {key} is {value!r}; it can be {', '.join(map(str, choices))}")
        default = design.defaults[key]
        number = isinstance(default, float) and isinstance(value, int)
        if default is not None and not number and type(value) is not type(default):
            raise InputError(f"design {name!r}: {key} is {value!r}; it must be like {default!r}")
    return DesignSpec(design, dict(settings or {}))


def _find(name: str, base: Path | None) -> type[MemoryDesign]:
    if ".py:" in name:
        return _from_file(name, base or Path.cwd())
    if name in _DESIGNS:
        return _DESIGNS[name]
    for point in _installed():
        if point.name == name:
            with own_code(f"design {name!r} of package {point.dist.name if point.dist else point.value!r}"):
                design = _checked_design(point.load(), f"entry point {name!r} ({point.value})")
                return _named(design, design.__name__)
    raise InputError(f"there is no design {name!r}{nearest(name, design_names())}")


def _checked_design(design: Any, what: str) -> type[MemoryDesign]:
    if not (inspect.isclass(design) and issubclass(design, MemoryDesign)):
        raise InputError(f"{what} is {design!r}; it must be a subclass of MemoryDesign")
    return design


def _from_file(name: str, base: Path) -> type[MemoryDesign]:
    file, _, class_name = name.rpartition(":")
    path = base / file
    module = import_file(path)
    design = getattr(module, class_name, None)
    if not (inspect.isclass(design) and issubclass(design, MemoryDesign)):
        classes = [k for k, v in vars(module).items() if inspect.isclass(v) and issubclass(v, MemoryDesign)]
        raise InputError(f"{path} has no design {class_name!r}{nearest(class_name, classes)}")
    return _named(design, class_name)


def _named(design: type[MemoryDesign], class_name: str) -> type[MemoryDesign]:
    """A design under its own name, which is its class's unless it says one: a base's stands for the base."""
    if "name" not in vars(design):
        design.name = class_name
    _check_name(design)
    return design


def _check_name(design: type[MemoryDesign]) -> None:
    """Raises InputError where a design has the name of a built-in one: their rows would be taken together."""
    if any(design.name == known.name and design is not known for known in _BUILT_IN):
        raise InputError(
            f"{design.__name__}.name is {design.name!r}, as a built-in design is called; "
            "give yours another name"
        )
