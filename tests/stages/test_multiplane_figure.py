"""The figures of `+experiment=multiplane`: suboptimality against the best bounds of all runs, and outer iterations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from solved import path_of, solved
from tiny import TINY

from gapwise.stages.reports.curves import read_curves
from gapwise.stages.reports.gap_trace import gap_trace
from gapwise.stages.reports.suboptimality import with_suboptimality
from gapwise.stages.reports.sweep_figures import compare
from gapwise.stages.reports.sweep_figures.multiplane import read_outer_iterations
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MultiplaneGroup

pytestmark = pytest.mark.slow

COSTS = {"oracle_seconds": 1e-4, "plane_seconds": 1e-6}
VARIANTS = {
    "BCFW": {"multiplane": MultiplaneGroup(**COSTS, approximate_passes=0)},
    "MP-BCFW-avg": {"multiplane": MultiplaneGroup(**COSTS), "averaging": "two_track"},
}


@pytest.fixture
def runs(tmp_path: Path):
    problem, made = TINY["chain"](), []
    for seed in range(2):
        for name, choices in VARIANTS.items():
            run = tmp_path / f"{name}-{seed}"
            cache = CacheOptions(kind="gap", capacity=1000)
            options = method_options("mpbcfw", cache=cache, max_passes=8.0, rebase_steps=1, **choices)
            path = path_of(rule="single", lam=0.05, tolerance=1e-12)
            solved(problem, run, options, path, seed=seed, every_passes=1.0)
            gap_trace(problem, run)
            made.append((name, "0.05", seed, run))
    return made


def test_figures__are_drawn_with_bands_over_seeds(tmp_path: Path, runs) -> None:
    comparison = compare("multiplane", runs, tmp_path / "sweep")
    assert comparison["figures"] == ["calls.png", "seconds.png", "planes.png"]
    for name in comparison["figures"]:
        with Image.open(tmp_path / "sweep" / "figures" / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 5
    assert [(row["variant"], row["seeds"]) for row in comparison["table"]] == [("BCFW", 2), ("MP-BCFW-avg", 2)]
    only = compare("multiplane", runs[:1], tmp_path / "sweep")
    assert only["figures"] == ["calls.png", "seconds.png"], (
        "without approximate passes there is nothing to show of them"
    )


def test_suboptimality__adds_up_to_the_gap_and_that_of_the_best_bounds(runs) -> None:
    curves = read_curves(runs)
    traces = [trace for traces in curves.values() for trace in traces]
    least = min(trace["primal"].min() for trace in traces) - max(trace["dual"].max() for trace in traces)
    for key, measured in with_suboptimality(curves).items():
        for trace, raw in zip(measured, curves[key], strict=True):
            np.testing.assert_allclose(trace["primal_excess"] + trace["dual_lack"], raw["gap"] + least, atol=1e-12)
            assert trace["primal_excess"].min() >= least - 1e-12
            assert trace["dual_lack"].min() >= least - 1e-12


def test_outer_iterations__are_those_of_the_solve(runs) -> None:
    curves = read_outer_iterations(runs, read_curves(runs))
    assert list(curves) == [("MP-BCFW-avg", "0.05")]
    for trace in curves["MP-BCFW-avg", "0.05"]:
        np.testing.assert_array_equal(trace["passes"], np.arange(1.0, trace["passes"].size + 1.0))
        assert (trace["approximate_passes"] >= 1.0).all(), (
            "the outer iteration in which a limit ended the solve is left out"
        )
        assert trace["planes"][0] <= 2.0
        assert trace["planes"][-1] > 2.0
