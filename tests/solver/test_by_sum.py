"""Structures whose steps compute B_i delta once, for its norm and its push: the same steps as from delta, up to rounding.

The norms from delta are less exact here: Gram matrices are stored in float32.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from parts_of import visits_of
from single import solver_of
from tiny import instance, segmentation
from tiny.potts import potts

from gapwise.stages.problems.moves import by_sum
from gapwise.stages.solver.block.views.features import room_for_sum

pytestmark = pytest.mark.interpreted

MADE = {
    "codes": lambda: instance("segmentation_u8"),
    "rows": lambda: instance("segmentation"),
    "fixed weight": lambda: segmentation(potts=0.5),
    "potts": potts,
}

ONE_MOVE = {"fw": True, "pairwise": True, "away": True, "best": False}
"""Step rules, and whether a step measures one move only."""


@functools.cache
def apart(kind):
    """The same structure without sums; one class for all tests, so that it is compiled once."""
    return type(f"{kind.__name__}Apart", (kind,), {"by_sum": lambda self: False})


def room(solver):
    """Numbers of workspace of a step."""
    return room_for_sum(solver.problem, visits_of(solver).flags()).size


def after_passes(problem, **choices):
    """u, w, the running average, ell, gaps and weights after four passes, and the solver."""
    solver = solver_of(problem, 0.05, sampler="permutation", **choices)
    solver.it.rebase()
    for seed in range(4):
        solver.it.make_room(problem.n)
        visits_of(solver).run(visits_of(solver).flags(), np.random.default_rng(seed).permutation(problem.n), problem.n)
    S = solver.it.state
    return [S.u, S.w, S.z, S.z_ell, S.ell, S.gap, S.pool.alpha, S.curvature], solver


@pytest.mark.parametrize(("name", "step"), list(zip(MADE, ONE_MOVE, strict=True)))
def test_steps__by_sums_are_those_apart(name, step):
    problem = MADE[name]()
    averaging = "weighted" if step == "fw" else "none"
    at_once, solver = after_passes(problem, step=step, averaging=averaging)
    from_delta, other = after_passes(apart(type(problem))(*problem), step=step, averaging=averaging)
    assert (by_sum(problem), by_sum(other.problem)) == (True, False)
    assert (room(solver), room(other)) == (problem.d if ONE_MOVE[step] else 0, 0)
    assert solver.it.state.curvature[0] > 0.0
    assert (solver.it.state.z.size > 0) == (averaging == "weighted")
    for a, b in zip(at_once, from_delta, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
