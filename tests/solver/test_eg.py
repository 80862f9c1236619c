"""Exponentiated gradient: the optimum of the dense QP, a dual that never falls, and what it cannot do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr
from dense import best, primal_value
from equality import assert_same_path
from solved import path_of, solved, stopped_and_resumed
from tiny import instance
from verified import copy_of

from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.solver import Solver
from gapwise.stages.verify import CertificateError, verify

pytestmark = pytest.mark.interpreted

LAM = 0.3
GRID = {"rule": "grid", "lambdas": [1.0, 0.3], "tolerance": 2e-2}


def eg_of(name: str, lam: float = LAM, **choices) -> Solver:
    options = method_options("eg", **{"max_passes": 3000.0, **choices})
    options.check()
    return begin(instance(name), options, PathOptions(rule="single", lam=lam), None, seed=0)


@pytest.mark.parametrize("name", ["chain_sparse", "multiclass_cone", "multiclass_sparse"])
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


def test_eg__is_bit_equal_when_resumed_and_verified(tmp_path: Path) -> None:
    problem, path = instance("chain"), path_of(**GRID, warm_start="keep_dual")
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
