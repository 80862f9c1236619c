"""The step rules, one file each: which moves a block may make. `solver.step` names the file; its `STEP` is the rule.

A rule is data for the compiled loop: a set of kinds of moves, of which the loop makes the one that improves the dual most.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from gapwise.parts import with_parts

__path__ = with_parts(__path__, "steps")

FW, PAIRWISE, AWAY = 1, 2, 4
"""Kinds of moves, as bits: towards a corner, from the worst active atom to the corner, away from that atom."""


class StepRule(NamedTuple):
    """Which moves a block may make."""

    kinds: int
    """Sum of kinds."""
    by_slope: bool = False
    """Only one of FW and AWAY is tried, the one with the larger slope (O16 Alg. 4)."""


def steps() -> tuple[str, ...]:
    """Names of all rules."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


def step_rule(name: str) -> StepRule:
    """A rule by its name."""
    found: StepRule = import_module(f"{__name__}.{name}").STEP
    return found
