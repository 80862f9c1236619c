"""The path rules (`stages.solver.path.rule.PathRule`): `path.rule` names a file with its `RULE`, or one of `SHARED`."""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapwise.stages.solver.path.rule import PathRule


SHARED = {"heuristic": ("paper", "Heuristic"), "single": ("grid", "Single")}
"""Rules that are in the file of another: the file and the class."""


def rules() -> tuple[str, ...]:
    """Names of all rules."""
    return tuple(sorted([*SHARED, *(module.name for module in iter_modules(__path__))]))


@functools.cache
def path_rule(name: str) -> type[PathRule]:
    """The class of a rule; ValueError lists the rules there are."""
    if name not in rules():
        raise ValueError(f"path.rule: expected one of {', '.join(rules())}, got {name!r}")
    file, attribute = SHARED.get(name, (name, "RULE"))
    rule: type[PathRule] = getattr(import_module(f"{__name__}.{file}"), attribute)
    return rule
