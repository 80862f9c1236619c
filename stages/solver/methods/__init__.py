"""The optimisers, one file each; `solver.method` names the file.

A file defines `METHOD`, a class derived from `stages.solver.method.Method`, and `Options`, a dataclass of the keys of
the group `solver` that it understands (derived from `stages.solver.options.MethodOptions`).
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from gapwise.stages.solver.options import OPTIONS, MethodOptions, check_one_of

if TYPE_CHECKING:
    from gapwise.stages.solver.method import AnyMethod


def methods() -> tuple[str, ...]:
    """Names of all methods."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def method(name: str) -> type[AnyMethod]:
    """The class of a method; ValueError lists the known methods."""
    check_one_of("solver.method", name, methods())
    found: type[AnyMethod] = import_module(f"{__name__}.{name}").METHOD
    return found


def options_type(name: str) -> type[MethodOptions]:
    """The options that a method understands."""
    check_one_of("solver.method", name, methods())
    options: type[MethodOptions] = OPTIONS.get(name) or import_module(f"{__name__}.{name}").Options
    return options


def method_options(method: str = "bcfw", **choices: Any) -> MethodOptions:
    """Options of a method, from keyword arguments."""
    return options_type(method)(method=method, **choices)
