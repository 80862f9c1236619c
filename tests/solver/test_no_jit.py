"""The same numbers with and without the compiler, so that a debugger steps through the same computation.

A second Python with NUMBA_DISABLE_JIT=1 solves the same tiny instances. Sums may be reordered by the compiler, so the
numbers agree up to rounding; where rounding may change the steps taken, only the results are compared.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numba
import numpy as np
import pytest
from single import never, take_steps
from tiny import TINY
from waiting import python

from gapwise.stages.init_path import init_path
from gapwise.stages.solver.codes import STEP_RULES
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.state import truth_pool

STRUCTURES = ("chain", "multiclass")


def optimum(name: str, step: str) -> list[float]:
    """Dual and primal at a gap of 1e-11: whatever the way, only rounding is left."""
    path = PathOptions(rule="single", lam=0.3, tolerance=1e-11)
    options = method_options(step=step, cache=CacheOptions(kind="gap"), refresh_every=2, max_passes=5000.0)
    solver = begin(TINY[name](), options, path, None, seed=0)
    status, point = solver.solve(Goal(path.tolerance), never)
    assert status is Status.CONVERGED
    return [point.dual, point.primal]


def one_pass(name: str) -> list[float]:
    """Everything an exact pass finds at w's that have no ties, and where a path begins."""
    problem = TINY[name]()
    rng = np.random.default_rng(7)
    numbers = []
    for _ in range(3):
        w = np.clip(rng.normal(size=problem.d), *((problem.lower, problem.upper) if problem.lower.size else (-9, 9)))
        exact = exact_gaps(problem, w, truth_pool(problem))
        numbers += [*exact.gap, *exact.hinge, *exact.answers.losses, *exact.answers.vertex.ravel().astype(float)]
    start = init_path(problem, PathOptions(rule="paper"))
    return [*numbers, start.lam, start.hinge_at_zero, start.psi_norm2]


def first_steps(name: str) -> list[float]:
    """The state after two visits of every block: u, ell and gaps."""
    problem = TINY[name]()
    options = method_options(sampler="permutation", step="fw", refresh_every=0)
    solver = begin(problem, options, PathOptions(rule="single", lam=0.3), None, seed=0)
    solver.it.rebase()
    for _ in range(2):
        take_steps(solver)
    S = solver.it.state
    return [*S.u, *S.ell, *S.gap, *S.counters.astype(float)]


def all_numbers() -> dict[str, list[float]]:
    """By case; all of them plain floats."""
    cases = {}
    for name, step in zip(STRUCTURES, itertools.cycle(step for step in STEP_RULES if step != "fw"), strict=False):
        cases |= {f"{name} {step}": optimum(name, step)}
        cases |= {f"{name} pass": one_pass(name), f"{name} steps": first_steps(name)}
    return {case: [float(value) for value in values] for case, values in cases.items()}


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="compares with the compiled code, which is switched off")
def test_no_jit__gives_the_same_numbers() -> None:
    script = "import json, test_no_jit; print(json.dumps(test_no_jit.all_numbers()))"
    done = python("-c", script, cwd=Path(__file__).parent, NUMBA_DISABLE_JIT="1")
    plain, compiled = json.loads(done.stdout.splitlines()[-1]), all_numbers()
    assert plain.keys() == compiled.keys()
    for case, values in compiled.items():
        assert values == pytest.approx(plain[case], rel=1e-10, abs=1e-10), case
