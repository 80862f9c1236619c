"""Exponentiated gradient: the optimum of the dense QP, a dual that never falls, and what it cannot do."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest
import zarr
from configs import composed
from dense import best, primal_value
from equality import assert_same_path
from parts_of import method_of
from solved import path_of, solved, stopped_and_resumed
from tiny import chain, instance, potts
from verified import copy_of

from gapwise.pipeline.config.settings import read
from gapwise.stages.certify import marginals
from gapwise.stages.problems.marginals import Scores
from gapwise.stages.solver.methods import method, method_options
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.solver import Solver
from gapwise.stages.solver.state import vertices_pool
from gapwise.stages.verify import CertificateError, verify

pytestmark = pytest.mark.slow

SUMMABLE = ["chain", "chain_sparse", "multiclass", "multiclass_cone", "multiclass_sparse"]
NAMES = SUMMABLE if numba.config.DISABLE_JIT else ["chain"]
"""Where code is compiled, the structure whose sums over labellings are the harder ones."""
LAM = 0.3
GRID = {"rule": "grid", "lambdas": [1.0, 0.3], "tolerance": 2e-2}


def eg_of(name: str, lam: float = LAM, **choices) -> Solver:
    options = method_options("eg", **{"max_passes": 3000.0, **choices})
    options.check()
    return begin(instance(name), options, PathOptions(rule="single", lam=lam), None, seed=0)


@pytest.mark.parametrize("truth", [[0, 0, 0, 0, 1, 1], [0, 1, 2, 0, 1, 2]])
def test_start__is_near_the_truth_also_where_it_repeats_a_transition(truth: list[int]) -> None:
    """The scores of the truth's own statistics would prefer 0 everywhere: all tokens share the transition 0 to 0."""
    problem = chain(lengths=(6, 6))._replace(truth=np.array([*truth, *truth], np.uint8))
    solver = begin(problem, method_options("eg", truth=10.0), PathOptions(rule="single", lam=0.01), None, seed=0)
    solver.rebase()
    expected = 2.0 * np.exp(-10.0) / (1.0 + 2.0 * np.exp(-10.0))  # two wrong labels a token
    np.testing.assert_allclose(method_of(solver).it.ell, expected, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_eg__reaches_the_optimum_and_its_dual_never_falls(name: str) -> None:
    """To a gap of 1e-6: labellings that are nearly as good as those of the optimum lose their weight slowly, so that 1e-8
    takes ten times the passes. The dual value itself is by then nearer."""
    problem, solver, duals = instance(name), eg_of(name), []

    def boundary(solver: Solver) -> None:
        duals.append(solver.dual_value())

    status, point = solver.solve(1e-6, boundary)
    assert status is Status.CONVERGED
    assert min(np.diff(duals)) >= -1e-12
    assert best(name, LAM) - 1e-7 <= point.dual <= best(name, LAM) + 1e-7
    assert point.primal == pytest.approx(primal_value(problem, solver.primal(), LAM), abs=1e-9)
    assert point.primal - point.dual == pytest.approx(point.gap, abs=1e-10)
    if problem.lower.size:
        assert (solver.primal() >= problem.lower).all()
        assert (solver.primal() <= problem.upper).all()


def test_eg__counts_marginals_as_oracle_calls() -> None:
    """Those of rejected steps, too, which halve a block's step size."""
    solver = eg_of("chain", eta=1000.0, max_passes=30.0)
    solver.solve(1e-9, lambda _: None)
    visits, marginals, halved = solver.iterate.counters
    assert visits == method_of(solver).counts.passes * solver.problem.n
    assert visits < marginals <= visits + halved
    assert solver.oracle_calls == marginals + solver.counts.gap_passes * solver.problem.n
    assert solver.ledger.passes_here >= 30.0


def test_eg__leaves_a_wrong_labelling_that_has_all_the_weight() -> None:
    """exp(-2000) is 0: a step changes no marginal there, but it changes the scores."""
    solver = eg_of("chain")
    problem = solver.problem
    wrong = (int(problem.truth[0]) + 1) % problem.labels
    solver.iterate.sigma[problem.local_ptr[0] + wrong] = 2000.0
    status, point = solver.solve(1e-4, lambda _: None)
    assert status is Status.CONVERGED
    assert point.dual >= best("chain", LAM) - 1e-4


def test_eg__never_leaves_the_formula_of_its_weights() -> None:
    """mu, ell and u as they are kept are those of the scores that are committed."""
    solver = eg_of("chain", max_passes=25.0)
    solver.solve(1e-9, lambda _: None)
    method_of(solver).one_pass()
    mu, ell, u = solver.iterate.mu.copy(), solver.iterate.ell.copy(), solver.iterate.u.copy()
    solver.iterate.rebase()
    np.testing.assert_allclose(mu, solver.iterate.mu, atol=1e-13)
    np.testing.assert_array_equal(ell, solver.iterate.ell)
    np.testing.assert_allclose(u, solver.iterate.u, atol=1e-11)


@pytest.mark.parametrize("warm", ["none", "keep_dual"])
def test_eg__is_bit_equal_when_resumed_and_verified(tmp_path: Path, warm: str) -> None:
    problem, path = instance("chain"), path_of(**GRID, warm_start=warm)
    options = method_options("eg", refresh_every=3)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(4).integers(0, 5, size=5)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
    verdict = verify(problem, tmp_path / "whole")
    assert verdict["certified"]
    assert verdict["broken"] == []
    assert verdict["max_rebuild_error"] < 1e-10


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("eg")
    assert solved(instance("chain"), run, method_options("eg"), path_of(**GRID)) is Status.CONVERGED
    return run


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return copy_of(whole, tmp_path)


@pytest.mark.parametrize(
    ("name", "index", "value", "says"),
    [
        ("dual_scores", 1, lambda x: 1.01 * x, "lambda 0.3 .breakpoint 1.*is stored as"),
        ("dual_loss_weight", 1, lambda x: 1.01 * x, "lambda 0.3 .breakpoint 1.*is stored as"),
        ("dual_scores", (0, 0), lambda x: np.nan, "dual_scores: entry .0, 0. is nan"),
        ("dual", 1, lambda x: x + 1e-4, "breakpoint 1.*dual is stored as"),
        ("weights", (0, 1), lambda x: x + 1e-4, "breakpoint 0.*stored weights differ"),
    ],
)
def test_verify__finds_what_was_changed_about_scores(run: Path, name: str, index, value, says: str) -> None:
    array = zarr.open_group(run / "path.zarr", mode="a")[name]
    values = array[...]
    values[index] = value(values[index])
    array[...] = values
    with pytest.raises(CertificateError, match=says):
        verify(instance("chain"), run)


def plain(function):
    """What numba compiled, as Python."""
    return getattr(function, "py_func", function)


@pytest.mark.parametrize("few", [1, 1000])
@pytest.mark.parametrize("which", ["weight", "loss", "nan"])
def test_expectations__find_marginals_that_are_no_means(monkeypatch, few: int, which: str) -> None:
    """Those of short blocks by enumeration, those of long ones by a direction in which no labelling goes as far."""
    for name in ("_first", "_next", "_sum_all", "_excess"):
        monkeypatch.setattr(marginals, name, plain(getattr(marginals, name)))
    monkeypatch.setattr(marginals, "FEW", few)
    problem, rng = instance("chain"), np.random.default_rng(0)
    driver = plain(marginals.expectations_driver(problem))
    monkeypatch.setattr(marginals, "expectations_driver", lambda P: driver)
    scores = Scores(rng.normal(size=int(problem.local_ptr[-1])), rng.random(problem.n))
    right = type(problem).marginals

    def wrong(self, i, theta, c, mu, scratch):
        log_sum, loss = right(self, i, theta, c, mu, scratch)
        if i == 2:
            mu[0] += {"weight": 1.0, "loss": 0.0, "nan": np.nan}[which]
            loss += 1.0 if which == "loss" else 0.0
        return log_sum, loss

    _, ell = marginals.expectations(problem, scores)
    monkeypatch.setattr(type(problem), "marginals", wrong)
    with pytest.raises(marginals.OracleError, match=r"block 2: the marginals are not the mean over its labellings"):
        marginals.expectations(problem, scores)
    most = ell + 1.0
    marginals.refuse_beyond(most, ell, np.ones(problem.n))
    with pytest.raises(
        marginals.OracleError, match=r"block 3: by its marginals the dual point is worth .* more than the max"
    ):
        marginals.refuse_beyond(most, ell, 1.0 + 1e-3 * (np.arange(problem.n) == 3))


def test_eg__says_what_it_cannot_solve(tmp_path: Path) -> None:
    options, single = method_options("eg"), path_of(rule="single", lam=0.3)
    can = "structures that can: chain, multiclass, multiclass_sparse"
    with pytest.raises(ValueError, match=rf"solver\.method: eg .* which Potts cannot; {can}"):
        solved(potts(), tmp_path, options, single)
    with pytest.raises(ValueError, match=r"solver\.method: .*use path=grid or path=single"):
        solved(instance("chain"), tmp_path, options, path_of())
    with pytest.raises(ValueError, match=r"path\.warm_start: keep_primal .*use keep_dual or none"):
        solved(instance("chain"), tmp_path, options, path_of(**GRID, warm_start="keep_primal"))
    assert not list(tmp_path.iterdir()), "bad input leaves nothing behind"
    problem = instance("chain")
    pool = vertices_pool(problem, (problem.truth + 1) % 3, np.ones(problem.n))
    with pytest.raises(ValueError, match="eg cannot begin at the dual point of another solve"):
        method("eg").begin(problem, options, pool, 0)
    for key, value in (("eta", 0.0), ("growth", 0.9), ("truth", -1.0), ("refresh_every", 0)):
        with pytest.raises(ValueError, match=rf"solver\.{key}: expected"):
            method_options("eg", **{key: value}).check()


def test_eg__has_a_preset() -> None:
    options = read(composed("solver=eg", "path=single", "path.lambda=0.1", "solver.truth=0")).solver
    assert (options.method, options.eta, options.truth, options.refresh_every) == ("eg", 10.0, 0.0, 10)
