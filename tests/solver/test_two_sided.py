"""The two-sided path: its bounds, its cells, and what they promise at every lambda (proof: `stages.solver.path.cells`)."""

from __future__ import annotations

import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import zarr
from dense import optimum, primal_value, psi_and_loss
from equality import assert_same_path
from solved import options_of, path_methods, path_of, solved, stopped_and_resumed
from tiny import TINY, by_all_methods, multiclass
from walks import EPS, assert_pair_bounds, assert_within, walked, weights

from gapwise.stages.problems import build
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.path import cells
from gapwise.stages.solver.path.axis import Member
from gapwise.stages.solver.path.cells import (
    GapBound,
    Pair,
    SolvedPoint,
    best_share,
    cell_to_zero,
    lowest,
    quadratic,
    solved_point,
    zero,
)
from gapwise.stages.solver.path.rule import PathStart
from gapwise.stages.solver.path.rules import two_sided
from gapwise.stages.solver.path.rules.two_sided import TwoSided

LOWEST = 0.02


@functools.cache
def tiny_path(name, relative=False, eps=EPS):
    problem = TINY[name]()
    return problem, *walked(problem, lambda_min=LOWEST, relative=relative, eps=eps)


# -- the bounds -----------------------------------------------------------------------------------------------------------
def test_best_share__is_the_maximum_over_the_triangle():
    rng = np.random.default_rng(0)
    grid = [(a, b) for a in np.linspace(0, 1, 101) for b in np.linspace(0, 1, 101) if a + b <= 1.0 + 1e-12]
    for trial in range(60):
        x, y = rng.normal(size=(2, 2 if trial % 3 else 1))  # in one dimension the curvature is singular
        numbers = (float(x @ x), float(x @ y), float(y @ y))
        gain, scale = tuple(rng.normal(size=2) + 0.5), float(rng.exponential())
        share = best_share(gain, *numbers, scale)
        assert min(share) >= 0.0
        assert sum(share) <= 1.0 + 1e-12

        def value(s, gain=gain, numbers=numbers, scale=scale):
            return gain[0] * s[0] + gain[1] * s[1] - 0.5 * scale * quadratic(s, *numbers)

        assert value(share) >= max(value(s) for s in grid) - 1e-9


def test_best_share__knows_points_that_are_zero():
    assert best_share((1.0, 2.0), 0.0, 0.0, 0.0, 1.0) == (0.0, 1.0)
    assert best_share((-1.0, -2.0), 0.0, 0.0, 0.0, 1.0) == (0.0, 0.0)


@pytest.mark.parametrize("name", by_all_methods())
def test_pair__bounds_the_primal_from_above_and_the_dual_from_below(name):
    problem, _, records, start, _ = tiny_path(name)
    a, b = records[1], records[2]
    inner = float(a.weights @ b.weights)
    pair = Pair(
        solved_point(a.point), solved_point(b.point), inner, a.point.lam * b.point.lam * inner, start.hinge_at_zero
    )
    assert_pair_bounds(problem, pair, a, b)


@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_zero__is_the_dual_point_of_the_largest_losses(name):
    problem, _, records, start, _ = tiny_path(name)
    psis, losses = psi_and_loss(problem)
    psi = np.mean([p[np.argmax(loss)] for p, loss in zip(psis, losses, strict=True)], axis=0)
    q = np.clip(psi, problem.lower, problem.upper) if problem.lower.size else psi
    if np.allclose(q, start.psi, atol=1e-6):  # ties may be broken otherwise
        assert zero(start.hinge_at_zero, start.psi_norm2).dual_norm2 == pytest.approx(float(q @ q), abs=1e-6)
    b = records[0]
    for tau in ((0.3, 0.5), (0.0, 1.0)):
        inner = b.point.lam * float(start.psi @ b.weights)
        pair = Pair(zero(start.hinge_at_zero, start.psi_norm2), solved_point(b.point), 0.0, inner, start.hinge_at_zero)
        assert pair.dual(b.point.lam, tau) <= optimum(problem, b.point.lam) + 1e-7


def test_cells__are_refused_where_the_middle_fails():
    a, b = SolvedPoint(1.0, 0.0, 0.5, 0.8, 0.4, 0.4), SolvedPoint(0.5, 0.0, 0.4, 0.7, 0.8, 0.2)
    pair = Pair(a, b, 0.5, 0.25, 1.0)
    worst = pair.worst(GapBound(1e-9, False), 0.5, 1.0)
    assert 0.5 < worst < 1.0
    assert pair.cells(GapBound(1e-9, False), 0, 0.5, 1.0) == []
    assert pair.cells(GapBound(10.0, False), 0, 0.5, 1.0)[0][:3] == (0, 0.5, 1.0)


# -- the path -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("relative", [False, True])
def test_path__is_eps_optimal_at_every_lambda(name, relative):
    problem, status, records, start, sides = tiny_path(name, relative)
    assert status is Status.CONVERGED
    lams = np.geomspace(max(LOWEST, sides.cells[-1].low), 2.0 * start.lam_top, 14)
    assert_within(problem, records, sides.cells, lams, relative=relative)


@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("relative", [False, True])
def test_path__cells_touch_and_reach_from_infinity_to_the_end(name, relative):
    _, _, records, start, sides = tiny_path(name, relative)
    assert sides.cells[0][:3] == (-1, start.lam_top, math.inf)
    for above, below in itertools.pairwise(sides.cells):
        assert below.high == above.low
        assert below.interval - above.interval in (0, 1)
    assert sides.cells[-1].interval == len(records)
    assert sides.cells[-1].low <= LOWEST
    assert records[-1].lambda_low == sides.cells[-1].low
    for cell in sides.cells:
        assert min(*cell.primal, *cell.dual) >= 0.0
        assert sum(cell.dual) <= 1.0 + 1e-12


@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_path__solves_to_kappa_eps(name):
    for b in tiny_path(name)[2]:
        assert b.point.gap <= 0.7 * EPS
    for b in tiny_path(name, relative=True)[2]:
        assert b.point.gap <= 0.7 * EPS * b.point.primal


@pytest.mark.interpreted
@pytest.mark.parametrize("method", path_methods())
def test_path__holds_with_every_method(method):
    problem = TINY["multiclass" if method == "cutting_plane" else "multiclass_cone"]()  # it takes no bounds
    options = options_of(method=method, max_passes=math.inf)
    _, records, _, sides = walked(problem, solver=options, lambda_min=LOWEST)
    assert_within(problem, records, sides.cells, np.geomspace(LOWEST, 3.0 * records[0].point.lam, 7))


@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_path__solves_between_where_its_steps_were_too_long(name, monkeypatch):
    """With steps many times too long every interval fails at first; what comes out holds all the same."""
    monkeypatch.setattr(two_sided, "THETA", (4.0, 6.0))
    problem, path = TINY[name](), PathOptions(rule="two_sided", eps=0.02, lambda_min=LOWEST)
    engine = Engine.begin(Task(problem, method_options(cache=CacheOptions(kind="gap")), path))
    sides = engine.rule
    sides.theta = 5.0
    order = list(engine.walk())
    assert engine.status is Status.CONVERGED
    lams = [b.point.lam for b in order]
    assert lams != sorted(lams, reverse=True)
    records = sorted(order, key=lambda b: -b.point.lam)
    assert_within(problem, records, sides.cells, np.geomspace(LOWEST, records[0].point.lam, 9), eps=0.02)


def test_path__needs_fewer_breakpoints_than_that_of_the_paper():
    paper = walked(TINY["multiclass_cone"](), rule="paper", lambda_min=0.5, eps=0.05)[1]
    assert len(walked(TINY["multiclass_cone"](), lambda_min=0.5, eps=0.05)[1]) < len(paper)


# -- the end of it --------------------------------------------------------------------------------------------------------
SEPARABLE = {"multiclass": functools.partial(multiclass, width=9), "chain_sparse": TINY["chain_sparse"]}


@pytest.mark.parametrize("name", sorted(SEPARABLE))
def test_relative_path__reaches_zero_where_data_are_separable(name):
    problem = SEPARABLE[name]()
    status, records, _, sides = walked(problem, relative=True)
    assert status is Status.CONVERGED
    cell = sides.cells[-1]
    assert cell.low == 0.0
    w = weights(records, cell)
    hinge = sides.members[-1].point.worst_hinge
    assert cell.primal == (1.0 / (1.0 - hinge), 0.0)
    assert primal_value(problem, w, 1.0) == pytest.approx(0.5 * float(w @ w), abs=1e-12)
    for lam in (cell.high, 0.1 * cell.high, 1e-3 * cell.high):
        primal = primal_value(problem, w, lam)
        assert primal - optimum(problem, lam) <= EPS * primal * (1 + 1e-6)


def test_cell_to_zero__needs_a_hinge_of_zero_for_the_relative_goal():
    point = SolvedPoint(0.1, 0.001, 0.01, 0.2, 1.9, 0.019, worst_hinge=0.02)
    assert cell_to_zero(point, GapBound(0.2, True), 1)[0].primal == (1.0 / 0.98, 0.0)
    assert cell_to_zero(point._replace(worst_hinge=0.0), GapBound(0.2, True), 1)[0].primal == (1.0, 0.0)
    assert cell_to_zero(point._replace(worst_hinge=1.0), GapBound(0.2, True), 1) == []
    assert cell_to_zero(point, GapBound(0.009, False), 1) == []


@pytest.mark.parametrize("relative", [False, True])
def test_path__ends_at_a_floor_on_data_that_are_not_separable(relative):
    x = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 2, axis=0)
    problem = build("multiclass", {"x": x, "labels": np.array([0, 1, 1, 2, 2, 0])}, {"classes": 3})
    status, records, _, sides = walked(problem, relative=relative)
    point = records[-1].point
    assert status is Status.LAMBDA_NEGLIGIBLE
    assert point.hinge > EPS
    assert 0.5 * point.lam * point.norm2 <= 0.01 * EPS
    assert 0.0 < sides.cells[-1].low < point.lam
    status, _, start, sides = walked(problem, relative=relative, lambda_min=1e-100)
    assert status is Status.ROUNDING_LIMIT
    assert 0.0 < sides.cells[-1].low <= cells.FLOOR * start.lam_top * (1 + 1e-12)


@pytest.mark.parametrize("relative", [False, True])
def test_lowest__is_where_the_point_alone_just_meets_the_goal(relative):
    point, goal = SolvedPoint(0.1, 0.01, 0.3, 0.48, 1.9, 0.019), GapBound(0.05, relative)
    low, alone = lowest(point, goal), Pair(point, SolvedPoint(0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0.0, 0.0)
    assert 0.0 < low < point.lam
    shares = (1.0, 0.0), (1.0, 0.0)
    assert -1e-5 < alone.excess(low, goal, shares) <= 0.0
    assert alone.excess(low * (1 - 1e-5), goal, shares) > 0.0


def test_path__stops_at_a_limit_and_claims_what_it_has():
    problem = TINY["multiclass"]()
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=3.0)
    status, records, _, sides = walked(problem, solver=options, eps=1e-3, lambda_min=LOWEST)
    assert status is Status.PASS_LIMIT
    assert sides.cells[-1].low > min(b.point.lam for b in records)


def test_path__that_cannot_certify_an_interval_ends(monkeypatch):
    """As if the dual bound of a pair were wrong between its ends: lambdas between them would be solved forever."""
    right = Pair.dual
    monkeypatch.setattr(Pair, "dual", lambda self, lam, tau: right(self, lam, tau) - 0.2 * (0.5 < lam < 0.9))
    status, records, _, rule = walked(TINY["multiclass"](), lambda_min=0.02)
    assert status is Status.STALLED
    above, below = (member.point.lam for member in rule.members[:2])
    assert (1.0 - two_sided.NARROW) * above <= below < above
    assert rule.cells[-1].low == above
    assert 5 < len(records) < 500


def test_steps__below_lambdas_of_many_passes_are_short_also_after_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, options = TINY["chain"](), options_of(method="accelerated", rebase_steps=0)
    path = path_of(rule="two_sided", kappa=0.7, eps=0.1, lambda_min=1e-3)

    def longest(run: Path) -> float:
        lams = np.sort(zarr.open_array(run / "path.zarr" / "lambda")[:])[::-1]
        return float(np.max(lams[:-1] / lams[1:]))

    assert solved(problem, tmp_path / "free", options, path) == "CONVERGED"
    monkeypatch.setattr(two_sided, "MANY", 1.0)
    monkeypatch.setattr(two_sided, "CLOSE", 3.0)
    assert solved(problem, tmp_path / "whole", options, path) == "CONVERGED"
    assert longest(tmp_path / "whole") <= 3.0 + 1e-9 < longest(tmp_path / "free")
    stops = np.random.default_rng(1).integers(0, 2, size=60)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 1
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_step__from_w_zero_goes_to_the_end_of_the_path():
    """Bounds on w may leave w = 0 at a lambda below the top; then ||w||^2 says nothing of the step."""
    start = PathStart(1.0, 10.0, 1.0, 2.0, *[np.zeros(2)] * 3, 2)
    last = SolvedPoint(1e-2, 0.05, 1.0, 0.95, 0.0, 0.0)

    def step(hinge: float = 1.0, fall: float = math.nan, relative: bool = False) -> float:
        rule = TwoSided.begin(PathOptions(rule="two_sided", eps=0.1, relative=relative), start)
        rule.members, rule.fall = [Member(last._replace(hinge=hinge), *[np.zeros(2)] * 2, 0)], fall
        return rule.below_last()

    assert step() == step(relative=True) == pytest.approx(2.5e-4)
    assert step(hinge=0.0, fall=1e-4) <= last.lam
