"""The path rules, one file each with the class `RULE` (`stages.solver.path.rule.PathRule`); `path.rule` names the file."""

from __future__ import annotations

import functools
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gapwise.parts import with_parts
from gapwise.stages.solver.path.capabilities import Capabilities

__path__ = with_parts(__path__, "rules")


def rules() -> tuple[str, ...]:
    """Names of all rules."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


@functools.cache
def path_rule(name: str) -> Any:
    """The class of a rule; ValueError lists the rules there are."""
    if name not in rules():
        raise ValueError(f"path.rule: expected one of {', '.join(rules())}, got {name!r}")
    return import_module(f"{__name__}.{name}").RULE


def capabilities(name: str) -> Capabilities:
    """What a rule can do; ValueError if there is no such rule."""
    record: Capabilities = path_rule(name).capabilities
    return record


def steppers() -> tuple[str, ...]:
    """Names of the rules whose steps `path.rule=heuristic` can take."""
    return tuple(name for name in rules() if capabilities(name).stale_steps)
