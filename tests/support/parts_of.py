"""The parts of a method, and of its pool of atoms, that tests look into."""

from __future__ import annotations

import math

from gapwise.stages.solver.exact import ExactGaps, certificate_of, exact_pass
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.objective import Certificate, Goal
from gapwise.stages.solver.supports import Pool


def pass_of(solver: AnyMethod) -> tuple[Certificate, ExactGaps]:
    """An exact pass at the point that the method certifies next."""
    return exact_pass(solver.it, solver.point)


def dual_of(solver: AnyMethod) -> float:
    """The dual value of a certificate at present."""
    return certificate_of(solver.it, solver.point, 0.0).dual


def take_steps(solver: AnyMethod) -> None:
    """The steps of `bcfw` until its next rebase point, without an exact pass."""
    solver.counts.exact_due = False
    solver.advance(Goal(math.nan))


def slots_of(pool: Pool, i: int) -> list[int]:
    """The slots of the atoms of block i, in list order."""
    slots, s = [], int(pool.head[i])
    while s >= 0:
        slots.append(s)
        s = int(pool.next[s])
    return slots
