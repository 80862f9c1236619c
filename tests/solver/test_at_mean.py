"""Exact passes at the mean: certificates of two points that are not each other's, and what is committed."""

from __future__ import annotations

import dataclasses
import functools
import re
from pathlib import Path

import numpy as np
import pytest
import zarr
from dense import optimum, primal_value
from solved import options_of, path_of, solved
from tiny import TINY, by_all_methods
from verified import copy_of, run_of
from walks import assert_pair_bounds, assert_within, dense_dual, walked

from gapwise.stages.solver.methods import method
from gapwise.stages.solver.objective import Goal, Mixture
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.cells import Pair, solved_point
from gapwise.stages.solver.path.rule import Solved
from gapwise.stages.solver.path.rules.two_sided import TwoSided
from gapwise.stages.solver.state import truth_pool
from gapwise.stages.verify import CertificateError, asked_for, verify
from gapwise.storage.paths import open_path

METHOD = "accelerated_at_mean"
EPS, LOWEST = 0.03, 0.02


def at_mean(**choices):
    return options_of(**{"method": METHOD, "rebase_steps": 0, **choices})


@functools.cache
def tiny_path(name, relative=False, method=METHOD):
    problem = TINY[name]()
    return problem, *walked(problem, at_mean(method=method), eps=EPS, lambda_min=LOWEST, relative=relative)


# -- the certificate ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("method", [METHOD, "accelerated"])
def test_cells__hold_at_random_lambdas(name, method):
    """At random lambdas the served model is within eps of the optimum, though w is not w(alpha)."""
    relative = name in ("multiclass_cone", "segmentation")
    problem, status, records, start, sides = tiny_path(name, relative, method)
    assert status is Status.CONVERGED
    assert np.isfinite([b.dual_norm2 for b in records]).all()
    assert any(not np.allclose(b.dual_norm2, (b.point.lam**2) * b.point.norm2, rtol=1e-3) for b in records)
    lowest = max(LOWEST, sides.cells[-1].low)
    lams = np.exp(np.random.default_rng(5).uniform(np.log(lowest), np.log(2.0 * start.lam_top), 8))
    assert_within(problem, records, sides.cells, lams, EPS, relative)


def test_pair__bounds_both_values_where_w_is_not_that_of_alpha():
    problem, _, records, start, _ = tiny_path("multiclass_cone")
    a, b = records[1], records[2]
    clipped = [np.clip(dense_dual(problem, x.supports)[0], problem.lower, problem.upper) for x in (a, b)]
    for record, q in zip((a, b), clipped, strict=True):
        assert record.dual_norm2 == pytest.approx(float(q @ q), rel=1e-9)
        assert record.point.dual == pytest.approx(record.point.ell - record.dual_norm2 / (2.0 * record.point.lam))
    points = [solved_point(x.point, dual_norm2=x.dual_norm2) for x in (a, b)]
    pair = Pair(*points, float(a.weights @ b.weights), float(clipped[0] @ clipped[1]), start.hinge_at_zero)
    assert_pair_bounds(problem, pair, a, b)


@pytest.mark.parametrize("name", by_all_methods(["chain", "multiclass_cone", "segmentation"]))
def test_path__certifies_lambdas_between_solved_ones_without_an_oracle_call(name):
    problem, _, records, _, _ = tiny_path(name)
    mixed = [b for b in records if b.oracle_calls == 0]
    assert mixed
    assert all(b.oracle_calls >= problem.n for b in records if b.oracle_calls)
    for b in mixed:
        primal = primal_value(problem, b.weights, b.point.lam)
        assert b.point.norm2 == pytest.approx(float(b.weights @ b.weights), rel=1e-12)
        assert b.point.primal >= primal - 1e-12  # R is convex, so its mean over the solved points is a bound
        assert b.point.gap == pytest.approx(b.point.primal - b.point.dual, abs=1e-12)
        assert primal - optimum(problem, b.point.lam) <= b.point.gap <= 0.98 * EPS


def test_mixture__is_the_best_point_between_the_solved_ones_around_lambda():
    problem, _, records, start, _ = tiny_path("multiclass_cone")
    points = [b.point for b in records[:3]]
    rule = TwoSided.begin(PathOptions(eps=EPS, lambda_min=LOWEST), start)
    for k, b in enumerate(records[:3]):
        rule.insert(Solved(k, b.status, b.point, b.weights, lambda: 0.0, 1, dual_weights=b.weights.copy()))
    for k in range(2):
        lam = float(np.sqrt(points[k].lam * points[k + 1].lam))
        mixture = rule.mixture(lam)
        bound = 0.5 * lam * float(mixture.weights @ mixture.weights) + mixture.hinge
        pair = rule.pair(k + 1)
        assert bound == pytest.approx(min(pair.primal(lam, t) for t in SHARES), rel=1e-4)
        assert bound >= primal_value(problem, mixture.weights, lam) - 1e-12
    above = rule.mixture(2.0 * points[0].lam)  # between w = 0 and the first
    assert np.linalg.matrix_rank(np.array([above.weights, records[0].weights])) == 1
    assert rule.mixture(points[1].lam) is rule.mixture(0.5 * points[2].lam) is None
    rule.path = dataclasses.replace(rule.path, relative=True)
    assert rule.mixture(lam) is None


SHARES = [(a, b) for a in np.linspace(0, 1, 201) for b in np.linspace(0, 1, 201) if a + b <= 1.0 + 1e-12]


def at_second_lambda():
    """A problem, the second breakpoint of its path, and a solver that begins at its lambda."""
    problem, _, records, _, _ = tiny_path("multiclass")
    solver = method("accelerated").begin(problem, at_mean(), truth_pool(problem), 3)
    solver.start_lambda(records[1].point.lam, 0)
    return problem, records[1], solver


def test_lambda__ends_at_a_mixture_only_where_its_gap_is_small_enough():
    problem, b, solver = at_second_lambda()
    for most, calls in ((b.point.gap - 1e-3, True), (b.point.gap + 0.5, False)):
        solver.start_lambda(b.point.lam, 0)
        before = solver.it.counts.gap_passes
        status, point = solver.solve(Goal(0.02, mixture=Mixture(b.weights, b.point.hinge, most)), lambda _: None)
        assert status is Status.CONVERGED
        assert (solver.it.counts.gap_passes > before) is calls
        assert np.array_equal(solver.primal(), b.weights) is not calls
        assert point.primal - optimum(problem, point.lam) <= point.gap <= (0.02 if calls else most)


def test_lambda__that_has_called_oracles_ends_at_no_mixture():
    """Verify takes the hinge of such a lambda for that of an exact pass, and that of a mixture is only a bound."""
    problem, b, solver = at_second_lambda()
    mixture = Mixture(b.weights, b.point.hinge + 1e-3, b.point.gap + 2e-3)
    status, point = solver.solve(Goal(1e-4, mixture=mixture), lambda _: None)
    assert status is Status.CONVERGED
    assert point.gap <= 1e-4
    assert point.hinge == pytest.approx(primal_value(problem, solver.primal(), 0.0), abs=1e-12)


@pytest.mark.parametrize("hinge", [np.nan, np.inf])
def test_lambda__ends_at_no_mixture_without_a_number(hinge):
    _, b, solver = at_second_lambda()
    _, point = solver.solve(Goal(0.02, mixture=Mixture(b.weights, hinge, 1.0)), lambda _: None)
    assert point.gap <= 0.02


def test_rule__keeps_the_norm_of_the_dual_point_and_not_that_of_w():
    _, _, records, _, sides = tiny_path("multiclass")
    (member,), last = sides.members, records[-1]
    point, dual = member.point, member.dual
    assert point.dual_norm2 == pytest.approx(last.dual_norm2, rel=1e-12)
    assert point.dual_norm2 == pytest.approx(point.lam**2 * float(dual @ dual), rel=1e-12)
    assert point.dual_norm2 != pytest.approx(point.lam**2 * point.norm2, rel=1e-4)
    np.testing.assert_array_equal(member.w, last.weights)


# -- what is stored -------------------------------------------------------------------------------------------------------
PATH = {"rule": "two_sided", "kappa": 0.7, "eps": 0.02, "lambda_min": 0.1}


def test_verify__knows_the_path_and_open_path_its_models(tmp_path: Path) -> None:
    problem = TINY["multiclass_cone"]()
    path = path_of(**PATH)
    assert solved(problem, tmp_path, at_mean(), path) is Status.CONVERGED
    verdict = verify(problem, tmp_path, asked=asked_for(path, "accelerated", seed=3, key="k"))
    assert verdict["certified"]
    stored = open_path(tmp_path)
    lams = stored["lambda"].values
    for lam in (1.5 * lams[0], np.sqrt(lams[1] * lams[2]), lams[-1]):
        primal = primal_value(problem, stored.weights_at(lam).values, lam)
        assert primal - optimum(problem, lam) <= PATH["eps"] * (1 + 1e-6)


def entry(name, index, value):
    def tamper(group: zarr.Group) -> None:
        array = group[name][...]
        array[index] = value(array[index])
        group[name][...] = array

    return tamper


def consistent_lie(group: zarr.Group) -> None:
    """A smaller ||q||^2 with the dual value and the gap that it would give."""
    change, lam = 1e-3 * group["dual_norm2"][1], group["lambda"][1]
    entry("dual_norm2", 1, lambda x: x - change)(group)
    entry("dual", 1, lambda x: x + change / (2 * lam))(group)
    entry("gap", 1, lambda x: x - change / (2 * lam))(group)


TAMPER = {
    "consistent": (consistent_lie, "breakpoint 1.*dual_norm2 is stored as"),
    "weights": (entry("weights", (1, 2), lambda x: x + 1e-3), "breakpoint 1.*(hinge|norm2) is stored as"),
    "inner": (entry("cell_inner", 3, lambda x: x * (1 + 1e-5)), "inner is stored as"),
    "dual_inner": (entry("cell_dual_inner", 3, lambda x: x * (1 + 1e-5)), "dual_inner is stored as"),
    "low": (entry("cell_low", -1, lambda x: 0.1 * x), "the gap reaches"),
}


@pytest.mark.parametrize("case", TAMPER)
def test_verify__finds_what_is_not_so(tmp_path: Path, case: str) -> None:
    run = copy_of(run_of("multiclass", "two_sided", method=METHOD), tmp_path)
    tamper, message = TAMPER[case]
    tamper(zarr.open_group(run / "path.zarr", mode="a"))
    with pytest.raises(CertificateError) as error:
        verify(TINY["multiclass"](), run)
    assert re.search(message, str(error.value)) or re.search(message, (run / "verify.json").read_text())


MIXED_TAMPER = {
    "a hinge that is too small": (lambda exact, stored: exact - 1e-5, "hinge is stored as"),
    "a bound that certifies too little": (lambda exact, stored: stored + 0.05, "the gap reaches"),
}


@pytest.mark.parametrize("case", MIXED_TAMPER)
def test_verify__takes_the_bound_of_a_mixture_and_nothing_smaller_than_its_hinge(tmp_path: Path, case: str) -> None:
    problem, path = TINY["multiclass"](), path_of(**{**PATH, "eps": EPS, "lambda_min": LOWEST})
    assert solved(problem, tmp_path, at_mean(), path) is Status.CONVERGED
    assert verify(problem, tmp_path)["certified"]
    group = zarr.open_group(tmp_path / "path.zarr", mode="a")
    (b, *_) = np.flatnonzero(group["oracle_calls"][...] == 0)
    lam, stored = float(group["lambda"][b]), float(group["hinge"][b])
    exact = primal_value(problem, group["weights"][b], lam) - 0.5 * lam * float(group["norm2"][b])
    assert exact < stored - 1e-6
    value, message = MIXED_TAMPER[case]
    for name in ("hinge", "primal", "gap"):
        entry(name, b, lambda x: x + value(exact, stored) - stored)(group)
    with pytest.raises(CertificateError):
        verify(problem, tmp_path)
    assert message in (tmp_path / "verify.json").read_text()


def test_verify__takes_no_bound_at_a_lambda_that_called_oracles(tmp_path: Path) -> None:
    run = copy_of(run_of("multiclass", "two_sided", method=METHOD), tmp_path)
    group = zarr.open_group(run / "path.zarr", mode="a")
    assert group["oracle_calls"][1] > 0
    for name in ("hinge", "primal", "gap"):
        entry(name, 1, lambda x: x + 1e-4)(group)
    with pytest.raises(CertificateError, match=r"breakpoint 1.*is stored as"):
        verify(TINY["multiclass"](), run)


def test_verify__takes_no_point_of_its_own_without_its_dual_norm(tmp_path: Path) -> None:
    """Saying that w is a point of its own does not make it one: the bounds at other lambdas need its dual point's norm."""
    run = copy_of(run_of("multiclass", "paper"), tmp_path)
    group = zarr.open_group(run / "path.zarr", mode="a")
    group.attrs.update(own_primal=True)
    entry("weights", (1, 2), lambda x: x + 1e-3)(group)
    with pytest.raises(CertificateError, match="array dual_norm2: nothing is stored that can be used"):
        verify(TINY["multiclass"](), run)
