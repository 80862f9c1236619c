"""Mini-batches: the plain loop's bits at tau = 1, the same for any workers, a feasible rising dual for any tau."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest
from dense import best, primal_value
from parts_of import dual_of, method_of
from python_task import Pairs
from single import LAM, never, solver_of
from spreads import backwards, elsewhere, on_threads
from tiny import by_all_methods, instance, multiclass, python_oracle

from gapwise.stages.problems import build
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.solver.codes import CACHED_STEPS, ORACLE_CALLS
from gapwise.stages.solver.codes import STEPS as STEP_COUNT
from gapwise.stages.solver.gaps import exact_gaps
from gapwise.stages.solver.methods.bcfw import Bcfw
from gapwise.stages.solver.options import SAMPLERS, Status
from gapwise.stages.solver.running import Flags
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.state import derive
from gapwise.stages.solver.steps import steps
from gapwise.stages.solver.supports import pack
from gapwise.stages.solver.visits import Visits

pytestmark = pytest.mark.slow


def bits(solver: Solver) -> list[bytes]:
    """Everything that is committed, and the trace but its seconds."""
    S = solver.iterate.state
    arrays = [*pack(S.pool, solver.problem.label_ptr), S.gap, S.counters, S.z, S.z_ell, S.u]
    trace = np.array([(*row[:5], *row[7:]) for row in solver.trace])
    return [array.tobytes() for array in (*arrays, trace)] + [str(solver.iterate.rng.bit_generator.state).encode()]


MEMBERS = list(itertools.product(SAMPLERS, steps(), ("none", "gap")))


def run_batches(visits: Visits, flags: Flags, order: np.ndarray, steps: int) -> int:
    """`Visits.run` as mini-batches run."""
    return Bcfw(visits.it, visits.it.ledger.options).run_batches(flags, order, steps)


@pytest.mark.share(0.5)
@pytest.mark.parametrize(("sampler", "step", "cache"), MEMBERS)
@pytest.mark.parametrize("averaging", ["none", "weighted"])
def test_batches_of_one__are_the_plain_loop(monkeypatch, sampler, step, cache, averaging) -> None:
    runs = []
    for _ in range(2):
        run = []
        for name in ("chain", "multiclass_cone"):
            choices = {"sampler": sampler, "step": step, "cache": cache, "averaging": averaging, "refresh_every": 3}
            solver = solver_of(instance(name), lam=0.01, rebase_steps=7, max_passes=8.0, **choices)
            solver.solve(1e-9, never)
            run += bits(solver)
        runs.append(run)
        monkeypatch.setattr(Visits, "run", run_batches)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", by_all_methods(["chain", "multiclass", "segmentation"]))
@pytest.mark.parametrize(("sampler", "cache"), [("gap", "gap"), ("uniform", "none")])
def test_batches__do_not_depend_on_who_calls_the_oracles(name, sampler, cache) -> None:
    runs = []
    for spread in (HERE, Spread(backwards), Spread(on_threads), elsewhere(instance(name))):
        choices = {"sampler": sampler, "cache": cache, "batch_size": 3, "max_passes": 8.0}
        solver = solver_of(instance(name), lam=0.01, spread=spread, **choices)
        solver.solve(1e-9, never)
        runs.append(bits(solver))
    assert all(run == runs[0] for run in runs)


@pytest.mark.share(0.6)
@pytest.mark.parametrize("name", by_all_methods(["chain_sparse", "multiclass_cone", "segmentation"]))
@pytest.mark.parametrize(("sampler", "step", "cache"), MEMBERS[::3])
def test_batches__reach_the_optimum_with_a_feasible_certificate(name, sampler, step, cache) -> None:
    problem = instance(name)
    tolerance = 2e-3 if step == "fw" else 1e-6
    choices = {"sampler": sampler, "step": step, "cache": cache, "batch_size": 3}
    solver = solver_of(problem, max_passes=20000.0, refresh_every=2, **choices)
    status, point = solver.solve(tolerance, never)
    assert status is Status.CONVERGED
    assert -1e-12 <= point.gap <= tolerance
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    assert point.dual <= best(name, LAM) + 1e-7 <= point.primal + 2e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.iterate.state.w, LAM), abs=1e-9)
    supports = pack(solver.iterate.state.pool, problem.label_ptr)
    assert supports.alpha.min() >= 0.0
    np.testing.assert_allclose(np.add.reduceat(supports.alpha, supports.offset[:-1]), 1.0, atol=1e-12)


@pytest.mark.share(0.5)
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("cache", ["none", "gap"])
def test_batches__dual_never_falls_and_running_state_is_the_derived_one(name, step, cache) -> None:
    problem = instance(name)
    size = problem.n - 1
    choices = {"sampler": "uniform", "step": step, "cache": cache, "refresh_every": 0}
    solver = solver_of(problem, lam=0.01, batch_size=size, rebase_steps=size + 1, **choices)
    solver.rebase()
    last = -np.inf
    for _ in range(60):
        dual = dual_of(solver)
        assert dual >= last - 1e-12
        last = dual
        before = int(solver.iterate.state.counters[STEP_COUNT])
        method_of(solver).take_steps(-1.0)
        S = solver.iterate.state
        assert S.counters[STEP_COUNT] == before + size + 1, "the second batch is cut short"
        running = S.ell.copy(), S.u.copy()
        derive(problem, S, solver.iterate.scale)
        for a, b in zip(running, (S.ell, S.u), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-11)
        assert (pack(S.pool, problem.label_ptr).alpha >= 0.0).all()
    assert last > 0.0


def verifiers(size: float):
    """Two examples of one class; the second's features are the first's times `size`."""
    return build("multiclass", {"x": np.array([[1.0], [size]]), "labels": np.zeros(2, int)}, {"classes": 2})


@pytest.mark.parametrize("step", steps())
def test_batches__move_in_the_order_drawn_and_skip_what_no_longer_ascends(step) -> None:
    """Both blocks ask for the same change of w. After the smaller one's exact step the larger one would overshoot."""
    seen = set()
    for seed in range(6):
        first = int(np.random.default_rng([seed, 0]).permutation(2)[0])
        choices = {"sampler": "permutation", "step": step, "cache": "gap", "rebase_steps": 2}
        solver = solver_of(verifiers(1.5), lam=0.1, seed=seed, batch_size=2, **choices)
        solver.rebase()
        method_of(solver).take_steps(-1.0)
        S = solver.iterate.state
        np.testing.assert_array_equal(S.gap, [0.5, 0.5], "n g_i is the loss at w = 0, for both")
        assert S.counters[STEP_COUNT] == S.counters[ORACLE_CALLS] == 2
        np.testing.assert_array_equal(S.pool.counts, 2, "vertices are paid for: the cache keeps them")
        assert S.ell[first] > 0.0
        assert (S.ell[1 - first] > 0.0) == (first == 1)
        seen.add(first)
    assert seen == {0, 1}


@pytest.mark.parametrize("cache", ["none", "gap"])
@pytest.mark.parametrize(("sampler", "step"), [("gap", "pairwise"), ("uniform", "fw"), ("max_gap", "away")])
def test_batches__note_gaps_of_the_common_w_and_ask_no_more_than_they_must(sampler, step, cache) -> None:
    problem = multiclass(n=20)
    saved = 0
    solver = solver_of(
        problem, lam=0.01, sampler=sampler, step=step, cache=cache, batch_size=6, rebase_steps=6, refresh_every=0
    )
    asked: list[tuple[np.ndarray, np.ndarray]] = []

    def call(fn, split, w, parts, places):
        """Exact gaps at the w that the oracles see, of the alpha that there is then."""
        S = solver.iterate.state
        mu, ell, u, copy = S.mu.copy(), S.ell.copy(), S.u.copy(), S.w.copy()
        derive(problem, S, solver.iterate.scale)
        true = exact_gaps(problem, copy, S.mu, S.ell, pool=S.pool).gap
        S.mu[:], S.ell[:], S.u[:] = mu, ell, u
        blocks = np.concatenate(parts)
        asked.append((blocks, true[blocks]))
        return [fn(problem, w, part) for part in parts]

    for _ in range(40):
        solver.rebase()
        S = solver.iterate.state
        before = S.counters.copy()
        asked.clear()
        solver.ledger.spread = Spread(elsewhere=call)
        method_of(solver).take_steps(-1.0)
        for blocks, gaps in asked:
            np.testing.assert_allclose(S.gap[blocks], np.maximum(gaps, 0.0), atol=1e-13)
        made = S.counters - before
        assert made[ORACLE_CALLS] == sum(blocks.size for blocks, _ in asked)
        assert made[ORACLE_CALLS] + made[CACHED_STEPS] == made[STEP_COUNT]
        saved += made[CACHED_STEPS]
    assert (saved > 0) == (cache == "gap")


@pytest.mark.parametrize("cache", ["none", "gap"])
def test_limits__hold_to_the_oracle_call(cache) -> None:
    problem = instance("multiclass")
    solver = solver_of(problem, lam=0.001, batch_size=5, cache=cache, max_oracle_calls=23, refresh_every=0)
    status, _ = solver.solve(1e-12, never)
    assert status is Status.ORACLE_LIMIT
    assert solver.iterate.state.counters[ORACLE_CALLS] == 23
    solver = solver_of(problem, lam=0.001, batch_size=5, cache=cache, max_passes=40.0, refresh_every=2)
    solver.solve(1e-12, never)
    calls = np.array(solver.trace)[:, 3]
    # two effective passes of steps and one exact pass, time after time; less where no known gap is left
    assert max(np.diff(calls)) == 3 * problem.n


@pytest.mark.parametrize("cache", ["none", "gap"])
def test_slow_python_oracle__waits_side_by_side_and_gives_the_same_bits(monkeypatch, cache) -> None:
    answer, lock, waiting, most = Pairs.max_oracle, threading.Lock(), 0, 0

    def slow(self, i, theta):
        nonlocal waiting, most
        with lock:
            waiting += 1
            most = max(most, waiting)
        time.sleep(0.002)
        with lock:
            waiting -= 1
        return answer(self, i, theta)

    problem = python_oracle(n=8)
    runs = []
    for oracle, spread in ((answer, HERE), (slow, HERE), (slow, elsewhere(problem))):
        monkeypatch.setattr(Pairs, "max_oracle", oracle)
        choices = {"sampler": "gap", "cache": cache, "batch_size": 4, "max_passes": 6.0, "refresh_every": 0}
        solver = solver_of(problem, lam=0.01, spread=spread, **choices)
        solver.rebase()
        most = 0
        method_of(solver).take_steps(-1.0)
        assert (most >= 2) == (spread is not HERE), "oracles of one batch wait side by side"
        assert most <= 4
        runs.append(bits(solver))
    assert runs[0] == runs[1] == runs[2]
