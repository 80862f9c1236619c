"""The step rules, one file each: which moves a block may make. `solver.step` names the file; its `STEP` is the rule.

A rule is data for the compiled loop: a set of moves (`block.moves`), of which the loop makes the one that improves the dual
most. A move without a file here is a rule by itself.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from gapwise.parts import with_parts
from gapwise.stages.solver.block.moves import bit, moves

__path__ = with_parts(__path__, "steps")

FW, PAIRWISE, AWAY = 1, 2, 4
"""Directions, and bits of the supplied moves: towards a vertex, from the worst active atom to it, away from that atom."""


class StepRule(NamedTuple):
    """Which moves a block may make (O16 Alg. 3, 4)."""

    kinds: int
    """Sum of bits."""
    by_slope: bool = False
    """Only the move with the largest slope is tried (O16 Alg. 4)."""


def steps() -> tuple[str, ...]:
    """Names of all rules."""
    return tuple(sorted({*(module.name for module in iter_modules(__path__)), *moves()}))


def step_rule(name: str) -> StepRule:
    """A rule by its name."""
    if name not in {module.name for module in iter_modules(__path__)}:
        return StepRule(bit(name))
    rule: StepRule = import_module(f"{__name__}.{name}").STEP
    return rule
