"""The schedule of exact passes at the mean: BCFW passes, partial and whole passes, and the labellings that are kept."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from dense import optimum
from single import never, solver_of
from solved import options_of, path_of
from tiny import TINY, multiclass, potts

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver import at_mean as schedule
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Stop
from gapwise.stages.solver.exact import exact_gaps
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import Status

METHOD = "accelerated_at_mean"


def at_mean(**choices):
    return options_of(**{"method": METHOD, "rebase_steps": 0, **choices})


def solver_at_mean(problem, lam=1e-2):
    return solver_of(problem, lam, method=METHOD, cache="gap", max_passes=3000.0)


def test_exact_passes__are_made_at_the_mean_and_end_the_solve(monkeypatch):
    problem = multiclass(n=30, width=9, classes=5)
    solver, made = solver_at_mean(problem), []
    method = solver
    pass_at_mean, partial_pass = method.pass_at_mean, method.partial_pass

    def exact():
        w, calls, S = method.mean, solver.oracle_calls, solver.it.state
        alone = exact_gaps(problem, w, S.pool)
        point = pass_at_mean()
        np.testing.assert_array_equal(passes[-1].gap, alone.gap)
        np.testing.assert_array_equal(solver.it.weights, w)
        assert solver.oracle_calls - calls == problem.n
        assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-9)
        assert method.own.last_exact == point.gap
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
    status, point = solver.solve(Goal(1e-4), never)
    assert status is Status.CONVERGED
    assert point.gap <= 1e-4
    assert made[0] == made[-1] == "exact"
    assert {"partial", "begun"} <= {*made}
    assert all(after == "exact" for before, after in itertools.pairwise(made) if before == "begun")
    assert optimum(problem, 1e-2) - 1e-6 <= point.primal <= optimum(problem, 1e-2) + 1e-4
    solver.move_to(5e-3, 1, "keep_dual")
    assert solver.solve(Goal(1e-4), never)[0] is Status.CONVERGED


def passes_noted(monkeypatch):
    """What exact passes find from now on, one after another."""
    passes, make = [], schedule.exact_pass

    def noted(*arguments, **choices):
        point, gaps = make(*arguments, **choices)
        passes.append(gaps)
        return point, gaps

    monkeypatch.setattr(schedule, "exact_pass", noted)
    return passes


@dataclass(frozen=True)
class Listening(Spread):
    """Blocks here, and which were asked."""

    asked: list[int] = field(default_factory=list)

    def blocks(self, fn, problem, w, blocks, split="train"):
        self.asked.extend(int(i) for i in blocks)
        return super().blocks(fn, problem, w, blocks, split)


@pytest.mark.parametrize(
    ("name", "all_first"),
    [("multiclass", True), ("chain", False), pytest.param("potts", False, marks=pytest.mark.interpreted)],
)
def test_whole_pass__asks_nobody_twice_and_finds_what_it_would_have_found_alone(monkeypatch, name, all_first):
    """The answers that a pass begins with are a part of it: the same gaps to the bit, and n calls in all."""
    problem = potts(n=5, most=4, seed=11, meta={"sweeps": 1, "slack": 0.0}) if name == "potts" else TINY[name]()
    solver, blocks = solver_at_mean(problem, 0.1), np.array([0, problem.n - 1])
    if all_first:
        blocks = np.arange(problem.n)
    solver.solve(Goal(0.5), never)
    S, asked = solver.it.state, []
    alone = exact_gaps(problem, solver.point, S.pool)
    solver.ledger.spread = Listening(asked=asked)
    method, passes = solver, passes_noted(monkeypatch)
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
    for a, b in zip((*gaps[:4], *gaps.answers), (*alone[:4], *alone.answers), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_partial_passes__are_never_more_than_a_number_in_a_row(monkeypatch):
    """Nothing is predicted to succeed here, as where rounding keeps the cached gap above the tolerance."""
    problem, made = multiclass(n=30, width=9, classes=5), []
    monkeypatch.setattr(schedule, "MOST_PARTIAL", 4)
    solver = solver_at_mean(problem)
    method = solver
    pass_at_mean, partial_pass = method.pass_at_mean, method.partial_pass

    def partial(_):
        made.append("partial")
        assert made[-5:] != ["partial"] * 5
        return partial_pass(-1.0)

    method.pass_at_mean = lambda: (made.append("exact"), pass_at_mean())[1]
    method.partial_pass = partial
    assert solver.solve(Goal(1e-4), never)[0] is Status.CONVERGED
    rows = [len(list(row)) for kind, row in itertools.groupby(made) if kind == "partial"]
    assert rows == [4] * len(rows)
    assert rows


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
