"""The schedule of exact passes at the mean: BCFW passes, partial and whole passes, and the labellings that are kept."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from dense import optimum
from parts_of import method_of, proximal_of
from single import never, solver_of
from solved import options_of, path_of
from tiny import TINY, multiclass, potts

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Stop
from gapwise.stages.solver.gaps import exact_gaps
from gapwise.stages.solver.iterate import mark_pass
from gapwise.stages.solver.methods import accelerated_at_mean
from gapwise.stages.solver.methods.accelerated_at_mean import AtMeanGroup
from gapwise.stages.solver.options import AccelerationOptions, Status
from gapwise.stages.solver.supports import pack

pytestmark = pytest.mark.slow

METHOD = "accelerated_at_mean"


def at_mean(**choices):
    return options_of(**{"method": METHOD, "rebase_steps": 0, **choices})


def solver_at_mean(problem, lam=1e-2, **choices):
    return solver_of(problem, lam, method=METHOD, cache="gap", max_passes=3000.0, at_mean=AtMeanGroup(**choices))


def test_exact_passes__are_made_at_the_mean_and_end_the_solve(monkeypatch):
    problem = multiclass(n=60, width=12, classes=6)
    solver, made = solver_at_mean(problem), []
    method = method_of(solver)
    pass_at_mean, partial_pass = method.pass_at_mean, method.partial_pass

    def exact():
        w, calls, S = method.proximal.mean, solver.oracle_calls, solver.iterate.state
        alone = exact_gaps(problem, w, S.mu, S.ell, pool=S.pool)
        point = pass_at_mean()
        np.testing.assert_array_equal(passes[-1].gap, alone.gap)
        np.testing.assert_array_equal(solver.iterate.weights, w)
        assert solver.oracle_calls - calls == problem.n
        assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
        assert method.counts.last_exact == point.gap
        made.append("exact")
        return point

    def partial(bound):
        calls = solver.oracle_calls
        ended = partial_pass(bound)
        assert (0 < solver.oracle_calls - calls < problem.n) if ended else solver.oracle_calls == calls
        made.append("partial" if ended else "begun")
        return ended

    passes = passes_noted(monkeypatch)
    method.pass_at_mean, method.partial_pass = exact, partial
    status, point = solver.solve(1e-4, never)
    assert status is Status.CONVERGED
    assert point.gap <= 1e-4
    assert made[0] == made[-1] == "exact"
    assert {"partial", "begun"} <= {*made}
    assert all(after == "exact" for before, after in itertools.pairwise(made) if before == "begun")
    assert optimum(problem, 1e-2) - 1e-6 <= point.primal <= optimum(problem, 1e-2) + 1e-4
    solver.move_to(5e-3, 1, "keep_dual")
    assert solver.solve(1e-4, never)[0] is Status.CONVERGED


def passes_noted(monkeypatch):
    """What exact passes find from now on, one after another."""
    passes, make = [], accelerated_at_mean.exact_pass

    def noted(*arguments, **choices):
        point, gaps = make(*arguments, **choices)
        passes.append(gaps)
        return point, gaps

    monkeypatch.setattr(accelerated_at_mean, "exact_pass", noted)
    return passes


@dataclass(frozen=True)
class Listening(Spread):
    """Blocks here, and which were asked."""

    asked: list[int] = field(default_factory=list)

    def blocks(self, fn, problem, w, blocks, split="train"):
        self.asked.extend(int(i) for i in blocks)
        return super().blocks(fn, problem, w, blocks, split)


BOUNDED = pytest.param(
    "potts",
    marks=pytest.mark.interpreted,
)


@pytest.mark.parametrize("all_first", [False, True])
@pytest.mark.parametrize("name", ["multiclass", "chain", BOUNDED])
def test_whole_pass__asks_nobody_twice_and_finds_what_it_would_have_found_alone(monkeypatch, name, all_first):
    """The answers that a pass begins with are a part of it: the same gaps to the bit, and n calls in all."""
    problem = potts(n=5, most=4, seed=11, meta={"sweeps": 1, "slack": 0.0}) if name == "potts" else TINY[name]()
    solver, blocks = solver_at_mean(problem, 0.1), np.array([0, problem.n - 1])
    if all_first:
        blocks = np.arange(problem.n)
    solver.solve(0.5, never)
    S, asked = solver.iterate.state, []
    alone = exact_gaps(problem, solver.point, S.mu, S.ell, pool=S.pool)
    solver.ledger.spread = Listening(asked=asked)
    method, passes = method_of(solver), passes_noted(monkeypatch)
    method.cache_error = np.zeros(problem.n)
    method.cache_error[blocks] = 1.0
    method.worst_blocks = lambda: blocks
    assert not method.partial_pass(math.inf)
    calls = solver.oracle_calls
    method.pass_at_mean()
    (gaps,) = passes
    assert sorted(asked) == list(range(problem.n))
    assert asked[: blocks.size] == blocks.tolist()
    assert solver.oracle_calls - calls == problem.n
    for a, b in zip(gaps, alone, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_partial_passes__are_never_more_than_a_number_in_a_row(monkeypatch):
    """Nothing is predicted to succeed here, as where rounding keeps the cached gap above the tolerance."""
    problem, made = multiclass(n=60, width=12, classes=6), []
    monkeypatch.setattr(accelerated_at_mean, "MOST_PARTIAL", 4)
    solver = solver_at_mean(problem, trust=0.0)
    method = method_of(solver)
    pass_at_mean, partial_pass = method.pass_at_mean, method.partial_pass

    def partial(_):
        made.append("partial")
        assert made[-5:] != ["partial"] * 5
        return partial_pass(-1.0)

    method.pass_at_mean = lambda: (made.append("exact"), pass_at_mean())[1]
    method.partial_pass = partial
    assert solver.solve(1e-4, never)[0] is Status.CONVERGED
    rows = [len(list(row)) for kind, row in itertools.groupby(made) if kind == "partial"]
    assert rows == [4] * len(rows)
    assert rows


def test_prediction__far_below_the_last_whole_pass_is_not_trusted():
    """Two solvers in the same state, one of which believes what it predicts, a twentieth of the last whole pass's gap."""
    ended = {}
    for trust in (0.04, 0.06):
        solver = solver_at_mean(multiclass(n=60, width=12, classes=6), trust=trust)
        solver.solve(1e-2, never)
        method, S = method_of(solver), solver.iterate.state
        method.cache_error, method.answered = np.full(60, 1e-3), None
        calls = solver.oracle_calls
        known = method.gaps_at_mean()
        exact = exact_gaps(solver.problem, method.proximal.mean, S.mu, S.ell, pool=S.pool).gap
        blocks = method.worst_blocks()
        rest = np.setdiff1d(np.arange(60), blocks)
        predicted = known.sum() + np.maximum(exact - known, 0.0)[blocks].sum() + 1e-3 * rest.size
        method.counts.last_whole = 20.0 * predicted
        ended[trust] = method.partial_pass(0.5 * predicted)
        assert solver.oracle_calls - calls == (blocks.size if ended[trust] else 0)
        assert (method.answered is None) == ended[trust]
    assert ended == {0.04: True, 0.06: False}


def test_bcfw_passes__are_one_or_end_near_the_tolerance_and_are_not_made_where_gaps_are_known():
    problem = multiclass(n=60, width=12, classes=6)
    solver, moved = solver_at_mean(problem), []
    proximal, counts = proximal_of(solver), method_of(solver).counts
    bcfw_pass = proximal.bcfw_pass
    proximal.bcfw_pass = lambda: (bcfw_pass(), moved.append(solver.counts.lam))
    assert solver.solve(1e-3, never)[0] is Status.CONVERGED
    assert len(moved) == 1
    solver.move_to(5e-3, 1, "keep_dual")
    assert counts.begun
    assert solver.solve(1e-3, never)[0] is Status.CONVERGED
    assert len(moved) == 1
    solver.move_to(5e-3, 2, "none")
    assert not counts.begun
    other, later = solver_at_mean(problem, start=1.0), []
    again = proximal_of(other).bcfw_pass
    proximal_of(other).bcfw_pass = lambda: (again(), later.append(1))
    other.solve(1e-3, never)
    assert len(later) > 1


def test_partial_pass__asks_the_blocks_of_large_cache_errors_and_caches_their_answers():
    problem = multiclass(n=60, width=12, classes=6)
    solver = solver_at_mean(problem)
    solver.solve(1e-2, never)
    method, proximal = method_of(solver), proximal_of(solver)
    proximal.mean, proximal.counts.points = (
        np.random.default_rng(4).normal(size=problem.d),
        1,
    )  # where the cache knows little
    S = solver.iterate.state
    exact, known = exact_gaps(problem, proximal.mean, S.mu, S.ell, pool=S.pool).gap, method.gaps_at_mean()
    asked = np.flatnonzero(known < exact - 1e-6)[:2]
    others = np.setdiff1d(np.arange(problem.n), asked)[:2]
    method.cache_error = np.zeros(problem.n)
    method.cache_error[asked], method.cache_error[others] = (0.5, 0.3), (0.15, 0.05)
    assert method.worst_blocks().tolist() == asked.tolist()
    calls = solver.oracle_calls
    assert method.partial_pass(1e-2)
    assert solver.oracle_calls - calls == 2
    np.testing.assert_allclose(method.gaps_at_mean()[asked], exact[asked], atol=1e-12)
    np.testing.assert_allclose(method.cache_error[asked], (exact - known)[asked], atol=1e-12)
    assert method.cache_error[others].tolist() == [0.15, 0.05]
    predicted = known.sum() + (exact - known)[asked].sum() + 0.15 + 0.05
    assert method.counts.last_exact == pytest.approx(predicted, rel=1e-9)


def test_labellings__not_chosen_for_long_are_dropped_along_a_path_too(monkeypatch):
    """Those without weight that were last chosen before the last 6 passes, though no lambda takes as many."""
    problem = multiclass(n=60, width=12, classes=6)
    acceleration = AccelerationOptions(unused_passes=6)
    solver = solver_of(problem, 0.3, method=METHOD, cache="gap", max_passes=3000.0, acceleration=acceleration)
    made, full, method = [], 0, method_of(solver)

    def noted(it, most):
        mark_pass(it, most)
        if method.counts.begun:
            made.append(solver.counts.breakpoint)

    monkeypatch.setattr(accelerated_at_mean, "mark_pass", noted)
    for k, lam in enumerate((0.3, 0.1, 0.05, 0.03, 0.02)):
        if k > 0:
            solver.move_to(lam, k, "keep_dual")
        assert solver.solve(0.05, never)[0] is Status.CONVERGED
        assert 0 < made.count(k) < 6
        packed = pack(solver.iterate.state.pool, problem.label_ptr)
        full += len(solver.counts.marks) == 6
        assert len(solver.counts.marks) < 6 or (packed.used[packed.alpha == 0.0] >= solver.counts.marks[0]).all()
    assert full >= 2


@pytest.mark.parametrize(("rule", "keeps"), [("anytime", True), ("two_sided", False)])
def test_labellings__are_kept_where_lambdas_come_again(rule, keeps):
    """A path whose epsilon falls goes up and down: each lambda begins to count anew."""
    problem, path = multiclass(n=60, width=12, classes=6), path_of(rule=rule, eps=0.05, lambda_min=0.05)
    engine, before = Engine.begin(Task(problem, at_mean(), path)), []
    solver = engine.solver
    moved = solver.move_to

    def move_to(*arguments):
        before.append(len(solver.counts.marks))
        moved(*arguments)
        assert len(solver.counts.marks) == (0 if keeps else before[-1])

    solver.move_to = move_to
    engine.run([Stop(lambda: len(before) == 3)])
    assert len(before) == 3
    assert before[-1] > 0


def test_options__name_what_is_wrong():
    for name, value in (("start", 0.0), ("rounds", 0), ("cache_error", 1.0), ("trust", -0.1), ("of_exact", -1.0)):
        with pytest.raises(ValueError, match=rf"solver\.at_mean\.{name}: expected"):
            at_mean(at_mean=AtMeanGroup(**{name: value}))
