"""The path rules, one file each with the class `RULE` (`stages.solver.path.rule.PathRule`); `path.rule` names the file."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gapwise.parts import with_parts

__path__ = with_parts(__path__, "rules")

GIVEN = "given"
"""The rule of given lambdas: a grid or a single one."""


def rules() -> tuple[str, ...]:
    """Names of all rules that find their lambdas themselves."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if module.name != GIVEN))


def path_rule(name: str) -> Any:
    """The class of a rule."""
    return import_module(f"{__name__}.{name}").RULE
