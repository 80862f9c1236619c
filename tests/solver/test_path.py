"""The path: its rules, its certificates at every lambda, its warm starts (O16 section 4)."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from dense import optimum, primal_value, psi_and_loss
from single import dual_of, never, pass_of
from solved import method_named
from tiny import TINY, all_labels, by_all_methods, chain, instance, multiclass

from gapwise.stages.init_path import init_path
from gapwise.stages.problems import build
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Stop
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.methods import method_options, methods
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import ENDED, CacheOptions, PathOptions, Status
from gapwise.stages.solver.path.rules import rules
from gapwise.stages.solver.path.rules.paper import Paper
from gapwise.stages.solver.path.walk import begin

EPS = 0.1
LOWEST = 0.02


def walked(problem, cache="gap", **choices):
    path = PathOptions(**{"eps": EPS, "kappa": 0.9, "rule": "two_sided", **choices})
    path.check()
    engine = Engine.begin(Task(problem, method_options(cache=CacheOptions(kind=cache)), path))
    records = list(engine.walk())
    return engine.status, records, engine.start, engine.solver


@functools.cache
def tiny_path(name):
    problem = TINY[name]()
    return problem, *walked(problem, rule="paper", lambda_min=LOWEST)  # tiny data are not separable


@pytest.mark.parametrize("name", by_all_methods())
def test_path__is_eps_optimal_at_every_lambda(name):
    problem, status, records, start, _ = tiny_path(name)
    assert status is Status.CONVERGED
    assert records[-1].lambda_low <= LOWEST
    lams = np.array([b.point.lam for b in records])
    for lam in np.geomspace(LOWEST, 2.0 * max(start.lam_top, lams[0]), 12):
        b = records[max(int(np.searchsorted(-lams, -lam, side="right")) - 1, 0)]
        w = b.weights
        if lam > lams[0]:
            w = w * (lams[0] / lam)
        assert primal_value(problem, w, lam) - optimum(problem, lam) <= EPS * (1 + 1e-6)


@pytest.mark.parametrize("name", by_all_methods())
def test_path__intervals_touch_and_gaps_keep_kappa(name):
    _, _, records, _, _ = tiny_path(name)
    for before, after in itertools.pairwise(records):
        assert after.point.lam == before.lambda_low
    for b in records:
        assert b.point.gap <= 0.9 * EPS
        assert b.point.primal - b.point.dual == pytest.approx(b.point.gap, abs=1e-10)


@pytest.mark.parametrize("name", by_all_methods())
def test_path__delta_of_the_paper_is_hinge_minus_gap(name):
    """Delta = (1/n) sum_i sum_y alpha_i(y) (L_i(y) + <theta_i, m_i(y) - m_i(y_i)>), computed block by block."""
    problem, _, _, _, solver = tiny_path(name)
    S, supports = solver.it.state, solver.supports()
    delta = 0.0
    for i in range(problem.n):
        lo, hi = problem.local_ptr[i], problem.local_ptr[i + 1]
        theta = np.empty(hi - lo)
        problem.scores(i, S.w, theta)
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        atoms = range(supports.offset[i], supports.offset[i + 1])
        labels = (supports.label[supports.label_offset[a] : supports.label_offset[a + 1]] for a in atoms)
        mean = sum(supports.alpha[a] * problem.value(i, theta, y) for a, y in zip(atoms, labels, strict=True))
        delta += (S.ell[i] + mean - problem.value(i, theta, truth)) / problem.n
    point, _ = pass_of(solver)
    assert delta == pytest.approx(point.hinge - point.gap, abs=1e-10)


@pytest.mark.parametrize("name", by_all_methods())
def test_keep_primal__keeps_w_and_moves_gaps_exactly(name):
    problem = TINY[name]()
    _, _, _, solver = walked(problem, rule="single", lam=0.5, tolerance=1e-3)
    w = solver.it.state.w.copy()
    point, _ = pass_of(solver)
    solver.move_to(0.3, 1, "keep_primal")
    predicted = solver.it.state.gap.copy()
    solver.it.rebase()
    moved, _ = pass_of(solver)
    np.testing.assert_allclose(solver.it.state.w, w, atol=1e-12)
    np.testing.assert_allclose(predicted, solver.it.state.gap, atol=1e-10)
    rho = 0.3 / 0.5
    assert moved.gap == pytest.approx(point.gap + (1 - rho) * (point.hinge - point.gap), abs=1e-10)


@pytest.mark.parametrize("name", by_all_methods())
@pytest.mark.parametrize("lam", [0.2, 0.9])
def test_theorem_1__holds_at_a_solved_lambda(name, lam):
    problem = TINY[name]()
    _, _, _, solver = walked(problem, rule="single", lam=0.5, tolerance=1e-3)
    point, _ = pass_of(solver)
    v, w = solver.it.state.u.copy(), solver.it.state.w.copy()
    solver.move_to(lam, 1, "keep_dual")
    solver.it.rebase()
    np.testing.assert_allclose(solver.it.state.u, v * 0.5 / lam, atol=1e-10)
    dual = dual_of(solver)
    expected = point.gap + point.norm2 * (lam - 0.5) ** 2 / (2 * lam)
    assert primal_value(problem, w, lam) - dual == pytest.approx(expected, abs=1e-9)


def test_paper__lower_end_has_gap_eps_exactly():
    _problem, _, records, _, _ = tiny_path("multiclass")
    for b in records[:-1]:
        point, low = b.point, Paper.lower_end(b.point, EPS)
        assert point.gap + (1 - low / point.lam) * (point.hinge - point.gap) == pytest.approx(EPS, abs=1e-12)


@pytest.mark.parametrize("name", by_all_methods(["chain", "segmentation", "python_oracle"]))
def test_init__means_are_those_of_blocks_by_themselves(name):
    """The blocks share a workspace, and have different sizes."""
    problem = TINY[name]()
    start, (psis, _) = init_path(problem, PathOptions(eps=EPS)), psi_and_loss(problem)
    rows = []
    for i in range(problem.n):
        own = slice(problem.label_ptr[i], problem.label_ptr[i + 1])
        (row,) = [k for k, y in enumerate(all_labels(problem, i)) if list(y) == start.labels[own].tolist()]
        rows.append(psis[i][row])
    psi = np.mean(rows, axis=0)
    np.testing.assert_allclose(start.psi, np.clip(psi, problem.lower, problem.upper) if problem.lower.size else psi)
    assert start.psi_scale == pytest.approx(np.mean(np.linalg.norm(rows, axis=1)))


def test_init__paper_start_is_kappa_eps_optimal():
    problem = TINY["multiclass_cone"]()
    path = PathOptions(rule="paper", eps=EPS, kappa=0.9)
    start = init_path(problem, path)
    solver = begin(problem, method_options(), path, start, seed=0)
    solver.it.rebase()
    point, _ = pass_of(solver)
    assert 0 <= point.gap <= 0.9 * EPS + 1e-12


@pytest.mark.parametrize("warm", ["none", "keep_primal", "keep_dual"])
def test_grid__every_warm_start_certifies_every_lambda(warm):
    problem = TINY["multiclass"]()
    lambdas = [1.0, 0.3, 0.1]
    status, records, _, _ = walked(problem, rule="grid", lambdas=lambdas, warm_start=warm, tolerance=1e-4)
    assert status is Status.CONVERGED
    assert [b.point.lam for b in records] == lambdas
    for b in records:
        assert b.point.gap <= 1e-4
        assert b.point.dual <= optimum(problem, b.point.lam) + 1e-7


@pytest.mark.parametrize("sampler", ["gap", "permutation"])
def test_relative_tolerance__needs_no_refresh(sampler):
    """The dual value that it is relative to is not known before an exact pass: one has to be made."""
    options = method_options(sampler=sampler, refresh_every=0)
    path = PathOptions(rule="grid", lambdas=[0.1, 1.0], relative=True, tolerance=0.01)
    points = iter(range(2000))
    engine = Engine.begin(Task(TINY["multiclass"](), options, path))
    assert engine.run([Stop(lambda: next(points, None) is None)]) is Status.CONVERGED


def test_path__lambda_min_ends_it_early():
    problem = TINY["multiclass"]()
    _, full, _, _ = walked(problem, lambda_min=1e-3)
    _, short, _, _ = walked(problem, lambda_min=full[1].point.lam * 1.01)
    assert len(short) < len(full)
    assert short[-1].lambda_low <= full[1].point.lam * 1.01


def test_path__ends_on_data_that_are_not_separable():
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(3, 2)), 2, axis=0)
    problem = build("multiclass", {"x": x, "labels": np.array([0, 1, 1, 2, 2, 0])}, {"classes": 3})
    status, records, _, _ = walked(problem, rule="paper")
    point = records[-1].point
    assert status is Status.LAMBDA_NEGLIGIBLE
    assert point.hinge > EPS
    assert 0.5 * point.lam * point.norm2 <= 0.01 * EPS
    assert 0.0 < records[-1].lambda_low < point.lam
    status, records, _, _ = walked(problem, rule="paper", lambda_min=point.lam * 1.01)
    assert status is Status.CONVERGED
    assert records[-1].lambda_low <= point.lam * 1.01


def classes_of(x, labels, classes=3):
    return build("multiclass", {"x": np.array(x, float), "labels": np.array(labels)}, {"classes": classes})


BORDERS = {
    "zero features": lambda: classes_of(np.zeros((5, 4)), [0, 1, 2, 0, 1]),
    "tiny features": lambda: classes_of(np.full((5, 4), 1e-59), [0, 1, 2, 0, 1]),
    "equal blocks": lambda: classes_of(np.ones((4, 2)), [0, 1, 0, 1], classes=2),
    "no loss": lambda: multiclass(n=5, cost=np.zeros((3, 3))),
    "one block": lambda: multiclass(n=1),
    "one label": lambda: classes_of(np.ones((3, 4)), [0, 0, 0], classes=1),
    "bounds that leave w = 0": lambda: multiclass(n=5, lower=np.zeros(12), upper=np.zeros(12)),
}
"""Problems with nothing to learn, or hardly anything."""


@pytest.mark.interpreted
@pytest.mark.parametrize(("k", "method"), list(enumerate(methods())))
@pytest.mark.parametrize(("j", "name"), list(enumerate(BORDERS)))
def test_borders__of_what_can_be_learned_end_in_certificates(j, name, k, method):
    """At one lambda, and along one of the rules in turn."""
    problem = BORDERS[name]()
    options = method_options(method, max_passes=30.0)
    for rule in {"single", rules()[(j + k) % len(rules())]}:
        path = PathOptions(rule=rule, lambdas=[0.3, 0.1], lam=0.1, eps=0.1, tolerance=0.1, max_breakpoints=20)
        try:
            engine = Engine.begin(Task(problem, options, path))
        except ValueError:  # not every method certifies along every path
            continue
        records = list(engine.walk())
        assert records
        for record in records:
            assert np.isfinite(record.weights).all()
            assert np.isfinite(record.point.gap) or method in ("ssg", "eg")
            if record.status is Status.CONVERGED:
                assert record.point.gap <= 0.1
        assert engine.status in ENDED or engine.status is Status.PASS_LIMIT


GAP = CacheOptions(kind="gap")


def solver_of(problem, method: str, **choices) -> AnyMethod:
    options = method_options(**method_named({"method": method, **choices}))
    return begin(problem, options, PathOptions(rule="single", lam=0.05), None, 0)


@pytest.mark.parametrize("name", by_all_methods())
def test_keep_primal__takes_the_values_of_atoms_for_the_mean(name):
    """Right after moves, without a rebase: gaps at the smaller lambda are those that an exact pass finds there."""
    problem = instance(name)
    solver = solver_of(problem, "bcfw", step="pairwise", cache=GAP)
    solver.solve(Goal(1e-2), never)
    solver.it.rebase()
    pass_of(solver)
    w = solver.it.state.w.copy()
    solver.move_to(0.04, 1, "keep_primal")
    moved = solver.it.state.gap.copy()
    solver.it.rebase()
    np.testing.assert_allclose(solver.it.state.w, w, atol=1e-12)
    pass_of(solver)
    np.testing.assert_allclose(moved, solver.it.state.gap, atol=1e-12)


def test_state__of_pairwise_moves_does_not_grow_with_local_coordinates():
    """Bytes of a block: atoms, gaps, tree; no number for each local coordinate."""
    n = 50
    sizes = []
    for classes in (3, 30):
        problem = chain(n, lengths=(4,) * n, width=30, classes=classes)
        S = solver_of(problem, "bcfw", step="pairwise", cache=GAP).it.state
        arrays = [*S.pool, *S.distances, *(array for array in S if isinstance(array, np.ndarray) and array is not S.u)]
        sizes.append(sum(array.nbytes for array in arrays))
        assert problem.local_ptr[-1] / n == 4 * classes + classes**2
    assert sizes[0] == sizes[1] < 800 * n
