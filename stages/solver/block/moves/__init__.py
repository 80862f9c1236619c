"""The moves, one file each: a direction, and how far a block may go along it. A file's `MOVE` is the move.

A direction leads from one point of the block to another: its mean mu_i, a vertex, or the active atom of least score. Slope,
curvature and the weights after the move follow from these two points (`stages.solver.directions`). Moves differ in
direction and gamma_max only, and share one line search. A step rule names the moves that a block may make
(`stages.solver.steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

from gapwise.parts import with_parts

__path__ = with_parts(__path__, "moves")

SUPPLIED = ("fw", "pairwise", "away")
"""The moves whose bits are constants: 1, 2, 4, `stages.solver.steps.FW` to `AWAY`. Others follow in the order of names."""


class Move(NamedTuple):
    """A kind of move.

    Examples
    --------
    A pairwise move that ends on the boundary after at most half of its way:

    >>> from gapwise.stages.problems.inner import inner
    >>> from gapwise.stages.problems.protocol import PLAIN
    >>> from gapwise.stages.solver.steps import PAIRWISE
    >>> @inner(**PLAIN)
    ... def half(whole):
    ...     return 0.5 * whole
    >>> Move(PAIRWISE, half).gamma_max(1.0)
    0.5
    """

    direction: int
    """FW: mu_i to the vertex. PAIRWISE: worst active atom to the vertex. AWAY: worst active atom to mu_i (its reverse)."""
    gamma_max: Callable[[float], float] | None = None
    """`inner` function (whole) -> the largest step, at most `whole`, which ends on the boundary of the simplex; None:
    whole."""


def moves() -> tuple[str, ...]:
    """Names of all moves, in the order of their bits."""
    names = sorted(module.name for module in iter_modules(__path__))
    return (*SUPPLIED, *(name for name in names if name not in SUPPLIED))


def bit(name: str) -> int:
    """The bit of a move in `StepRule.kinds`."""
    return 1 << moves().index(name)


def move(name: str) -> Move:
    """A move by its name."""
    kind: Move = import_module(f"{__name__}.{name}").MOVE
    return kind
