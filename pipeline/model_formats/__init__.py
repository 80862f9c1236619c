"""Forms in which a model leaves a run, one file each: ``gapwise export RUN --format NAME``.

A module offers ``write(model, target, run)``, which writes a `stages.model.model.Model` of a run to a location, whole
or not at all, and ``ENDING``, of the name that the target gets if none is given. A module whose name begins with an
underscore is none.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def known() -> list[str]:
    """Names of all forms; imports none of them."""
    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


def form(name: str) -> ModuleType:
    """The module of the form called `name`."""
    return import_module(f"{__name__}.{name}")
