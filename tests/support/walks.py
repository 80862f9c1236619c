"""Paths walked in memory, the w of their cells, and the dual points of their breakpoints from scratch."""

from __future__ import annotations

import numpy as np

from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions

EPS = 0.1


def walked(problem, solver=None, **choices):
    path = PathOptions(**{"rule": "two_sided", "eps": EPS, **choices})
    path.check()
    engine = Engine.begin(Task(problem, solver or method_options(cache=CacheOptions(kind="gap")), path))
    records = sorted(engine.walk(), key=lambda b: -b.point.lam)
    return engine.status, records, engine.start, engine.rule


def weights(records, cell):
    """w of the cell."""
    vectors = [np.zeros_like(records[0].weights), *(b.weights for b in records), np.zeros_like(records[0].weights)]
    return cell.primal[0] * vectors[cell.interval] + cell.primal[1] * vectors[cell.interval + 1]


def dense_dual(problem, supports):
    """(psi, ell) of the dual point with these supports, from scratch."""
    psi, ell = np.zeros(problem.d), 0.0
    for i in range(problem.n):
        delta = np.zeros(int(problem.local_ptr[i + 1] - problem.local_ptr[i]))
        problem.add(i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]], 1.0, delta)
        for a in range(supports.offset[i], supports.offset[i + 1]):
            y = supports.label[supports.label_offset[a] : supports.label_offset[a + 1]]
            problem.add(i, y, -supports.alpha[a], delta)
            ell += supports.alpha[a] * problem.loss(i, y) / problem.n
        problem.push(i, 1.0 / problem.n, delta, psi)
    return psi, ell
