"""Gaps from stored snapshots: they equal exact ones, do not change the solve, and survive its being killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dense import psi_and_loss
from solved import solved
from tiny import TINY

from gapwise.stages.problems.protocol import Problem
from gapwise.stages.reports.gap_trace import gap_trace, read_gap_trace
from gapwise.stages.solver.block.sampling import nonuniformity
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import dual_value
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions, Status
from gapwise.stages.solver.state import derive, new_state, pool_of
from gapwise.stages.solver.supports import Supports
from gapwise.storage.layout import read_group
from gapwise.storage.results import read_trace

SUPPORTS = (
    "support_offset", "support_alpha", "support_loss", "support_used", "support_label", "label_offset",
)  # fmt: skip
MEASURED = {"seconds"}
GRID = PathOptions(rule="grid", lambdas=[0.3, 0.05], tolerance=1e-9)


def options(problem: Problem, **choices) -> MethodOptions:
    often = {"refresh_every": 3} if choices.get("method", "bcfw") == "bcfw" else {}
    return method_options(**{"max_passes": 8.0, "rebase_steps": problem.n, **often, **choices})


def with_snapshots(
    problem: Problem, run: Path, every: float = 1.0, solver: MethodOptions | None = None, **ways
) -> Status:
    return solved(problem, run, solver or options(problem), GRID, every_passes=every, **ways)


def after(calls: int) -> Callable[[], bool]:
    left = iter(range(calls))
    return lambda: next(left, None) is None


def same(a: Path, b: Path, group: str) -> None:
    first, other = read_group(a / group)[0], read_group(b / group)[0]
    assert first.keys() == other.keys()
    for name in first.keys() - MEASURED:
        assert first[name].tobytes() == other[name].tobytes(), name


@pytest.mark.parametrize("name", ["chain", "multiclass_cone"])
def test_gap_trace__is_the_exact_gap(tmp_path: Path, name: str) -> None:
    """Where an exact pass was made at the very point of a snapshot, both know its gap."""
    problem = TINY[name]()
    with_snapshots(problem, tmp_path, 1e-9)
    assert gap_trace(problem, tmp_path) > 6
    gaps, trace = read_gap_trace(tmp_path), read_trace(tmp_path)
    assert (gaps["gap"] >= -1e-12).all()
    assert set(gaps["breakpoint"]) == {0, 1}
    met = 0
    for row in range(trace["gap"].size):
        calls = trace["oracle_calls"][row] - problem.n
        here = (gaps["oracle_calls"] == calls) & (gaps["steps"] == trace["steps"][row])
        for k in np.flatnonzero(here & (gaps["breakpoint"] == trace["breakpoint"][row])):
            met += 1
            assert gaps["gap"][k] == pytest.approx(trace["gap"][row], rel=1e-9, abs=1e-12)
            assert gaps["primal"][k] == pytest.approx(trace["primal"][row], rel=1e-12)
    assert met >= 3
    known = np.isfinite(gaps["nonuniformity"])
    assert (known == np.isfinite(gaps["stale_gap"]) & (gaps["stale_gap"] > 0.0)).all()
    assert ((gaps["nonuniformity"][known] >= 1.0) & (gaps["nonuniformity"][known] <= np.sqrt(problem.n))).all()
    last = gaps["curvature_nonuniformity"][-1]
    norms = [np.sum(psi**2, axis=1) for psi in psi_and_loss(problem)[0]]
    assert 1.0 <= last <= np.sqrt(problem.n)
    if name == "multiclass_cone":  # all wrong labels of a block have the same norm
        assert last == pytest.approx(nonuniformity(np.array([norm.max() for norm in norms])), rel=1e-6)


def test_nonuniformity__of_vectors() -> None:
    assert nonuniformity(np.ones(9)) == 1.0
    assert nonuniformity(np.eye(9)[3]) == pytest.approx(3.0)
    x = np.array([1.0, 2.0, 5.0])
    assert np.linalg.norm(x) == pytest.approx(nonuniformity(x) / np.sqrt(3.0) * np.sum(x)), "O16 Lemma 6"
    assert nonuniformity(np.array([-1e-18, 2e-18])) == pytest.approx(np.sqrt(2.0)), "a gap that rounding made negative"
    assert np.isnan([nonuniformity(np.zeros(3)), nonuniformity(np.array([1.0, np.inf]))]).all()


def test_snapshots__of_an_accelerated_solve_have_the_dual_of_lambda(tmp_path: Path) -> None:
    """Taken in the middle of a proximal problem; recomputed from the labellings committed at the same moment."""
    problem = TINY["multiclass_cone"]()
    solver = options(problem, method="accelerated", max_passes=40.0, cache=CacheOptions("gap"))
    met, means = 0, 0
    for calls in range(3, 6):
        assert (
            with_snapshots(problem, tmp_path, 1e-9, solver=solver, stop=after(1), every_seconds=0.0)
            is Status.INTERRUPTED
        )
        head = json.loads((tmp_path / "state" / "HEAD.json").read_text())
        a, attrs = read_group(tmp_path / "state" / f"g{head['generation']:06d}.zarr")
        counts, own = attrs["method"]["counts"], attrs["method"]["own"]
        met += counts["kappa"] > 0.0
        supports = Supports(*(a[name] for name in SUPPORTS))
        state = new_state(problem, pool_of(problem, supports))
        derive(problem, state, 1.0 / (counts["lam"] * problem.n))
        dual = dual_value(float(state.z_ell[1]), state.u, state.w, counts["lam"], problem.lower, problem.upper)
        last = read_group(tmp_path / "snapshots" / attrs["snapshots"][-1]["name"])[0]
        assert last["dual"][-1] == pytest.approx(dual, rel=1e-9), calls
        if own["points"]:
            np.testing.assert_array_equal(last["weights"][-1], a["mean"])
            means += 1
    assert met
    assert means


def test_snapshots__do_not_change_the_solve(tmp_path: Path) -> None:
    problem = TINY["multiclass"]()
    assert with_snapshots(problem, tmp_path / "with") == with_snapshots(problem, tmp_path / "without", 0.0)
    same(tmp_path / "with", tmp_path / "without", "path.zarr")
    assert not (tmp_path / "without" / "snapshots.zarr").exists()
    assert gap_trace(problem, tmp_path / "without") == 0


def test_snapshots__survive_interruptions(tmp_path: Path) -> None:
    """Stopped after every few rebase points, and committed only there."""
    problem = TINY["multiclass"]()
    with_snapshots(problem, tmp_path / "whole")
    starts = 0
    while True:
        starts += 1
        status = with_snapshots(problem, tmp_path / "parts", stop=after(4))
        if status is not Status.INTERRUPTED:
            break
        assert starts < 50
    assert starts > 2
    same(tmp_path / "whole", tmp_path / "parts", "snapshots.zarr")
    same(tmp_path / "whole", tmp_path / "parts", "path.zarr")
    assert not (tmp_path / "parts" / "snapshots").exists()


def test_snapshots__of_multiplane_are_of_the_average(tmp_path: Path) -> None:
    problem = TINY["multiclass"]()
    traces = {}
    for averaging in ("none", "two_track"):
        run = tmp_path / averaging
        chosen = {"method": "mpbcfw", "cache": CacheOptions(kind="gap"), "averaging": averaging}
        with_snapshots(problem, run, solver=options(problem, **chosen))
        gap_trace(problem, run)
        traces[averaging] = read_gap_trace(run)
    plain, other = traces["none"], traces["two_track"]
    np.testing.assert_array_equal(plain["dual"][:3], other["dual"][:3])
    assert (plain["primal"][1:3] != other["primal"][1:3]).all()
    assert (other["gap"] >= -1e-9).all()
