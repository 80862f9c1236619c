"""Paths walked in memory, the w of their cells, and the dual points of their breakpoints from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from dense import optimum, primal_value

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


def assert_within(problem, records, cells, lams, eps=EPS, relative=False):
    """At these lambdas the objective of the cells' w is within eps, or that share of it, of the optimum of a dense QP."""
    for lam in lams:
        primal = primal_value(problem, weights(records, next(c for c in cells if c.low <= lam)), lam)
        assert primal - optimum(problem, lam) <= eps * (primal if relative else 1.0) * (1 + 1e-6), lam


def assert_pair_bounds(problem, pair, a, b):
    """At random shares and lambdas, the primal and dual values of a pair are bounds on those of the mixed points."""
    rng, boxed = np.random.default_rng(1), problem.lower.size > 0
    (psi_a, ell_a), (psi_b, ell_b) = (dense_dual(problem, x.supports) for x in (a, b))
    for _ in range(20):
        t, tau = rng.dirichlet(np.ones(3), size=2)[:, :2]
        lam = float(np.exp(rng.uniform(np.log(b.point.lam / 3), np.log(a.point.lam * 3))))
        w, psi = t[0] * a.weights + t[1] * b.weights, tau[0] * psi_a + tau[1] * psi_b
        q = np.clip(psi, problem.lower, problem.upper) if boxed else psi
        dual = tau[0] * ell_a + tau[1] * ell_b - float(q @ q) / (2 * lam)
        assert pair.primal(lam, tuple(t)) >= primal_value(problem, w, lam) - 1e-9
        assert pair.dual(lam, tuple(tau)) <= dual + 1e-9
        if not boxed:
            assert pair.dual(lam, tuple(tau)) == pytest.approx(dual, abs=1e-9)


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
