"""The guarantee of a path, for every rule on three structures: exact passes at random lambdas."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import pytest
from tiny import chain, multiclass, multiclass_cone

from gapwise.stages.init_path import init_path
from gapwise.stages.solve import solve
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.state import truth_pool
from gapwise.storage.paths import open_path

PROBLEMS = {
    "chain": lambda: chain(7, lengths=(3, 1, 5, 2, 4, 6, 3, 2, 5), width=7),
    "multiclass": lambda: multiclass(n=25, width=6, classes=4),
    "multiclass_cone": multiclass_cone,
}
LOWEST = 0.01
NEAR, EPS = 1e-5, 0.05
OPTIONS = method_options(cache=CacheOptions(kind="gap"))


@functools.cache
def optima(name: str) -> tuple[np.ndarray, np.ndarray]:
    """60 random lambdas down from above every path's top, and dual values within NEAR of the optimal ones."""
    problem = PROBLEMS[name]()
    start = init_path(problem, PathOptions(rule="paper", eps=EPS))
    assert start is not None
    top = 4.0 * max(start.lam, start.lam_top)
    lams = np.sort(np.exp(np.random.default_rng(1).uniform(math.log(LOWEST), math.log(top), 60)))[::-1]
    path = PathOptions(rule="grid", lambdas=lams.tolist(), tolerance=NEAR)
    engine = Engine.begin(Task(problem, OPTIONS, path, seed=5))
    duals = np.array([b.point.dual for b in engine.walk()])
    assert engine.status is Status.CONVERGED
    return lams, duals


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("chain", "two_sided"),
        ("multiclass", "relative"),
        ("multiclass_cone", "paper"),
    ],
)
def test_guarantee__holds_at_random_lambdas(tmp_path: Path, name: str, rule: str) -> None:
    problem, eps = PROBLEMS[name](), EPS
    choices = {"rule": "two_sided", "relative": True} if rule == "relative" else {"rule": rule}
    path = PathOptions(eps=eps, lambda_min=LOWEST, **choices)
    assert solve(Task(problem, OPTIONS, path), tmp_path, key="k") is Status.CONVERGED
    solved_path = open_path(tmp_path)
    lams, duals = optima(name)
    assert lams[0] > max(float(solved_path["lambda"][0]), solved_path.attrs["lam_top"])
    worst = 0.0
    for lam, dual, w in zip(lams, duals, solved_path.weights_at(lams).values, strict=True):
        if problem.lower.size:
            assert np.all((w >= problem.lower) & (w <= problem.upper))
        primal = 0.5 * lam * float(w @ w) + float(np.mean(exact_gaps(problem, w, truth_pool(problem)).hinge))
        allowed = eps * (primal if rule == "relative" else 1.0)
        assert primal - dual <= allowed * (1 + 1e-9) + NEAR, lam
        worst = max(worst, (primal - dual) / allowed)
    assert worst > 0.3  # a guarantee far from being used would hide a w that is not the path's
