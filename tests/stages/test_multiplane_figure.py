"""The figures of `+experiment=multiplane`: suboptimality against the best bounds of all runs, and outer iterations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf
from PIL import Image
from solved import path_of, solved
from tiny import TINY

from gapwise.pipeline.config import CONF
from gapwise.stages.reports.gap_trace import gap_trace
from gapwise.stages.reports.paint import looks
from gapwise.stages.reports.sweep_figures import compare
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MultiplaneGroup

VARIANTS = {
    "BCFW": {"multiplane": MultiplaneGroup(approximate_passes=0)},
    "MP-BCFW-avg": {"averaging": "two_track"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory):
    problem, made, folder = TINY["multiclass"](), [], tmp_path_factory.mktemp("multiplane")
    for seed in range(2):
        for name, choices in VARIANTS.items():
            run = folder / f"{name}-{seed}"
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
    assert {(row["variant"], row["seeds"]) for row in comparison["table"]} == {("BCFW", 2), ("MP-BCFW-avg", 2)}


def test_variants__of_the_experiment_differ_in_colour_or_dash() -> None:
    variants = [*OmegaConf.load(CONF / "experiment" / "multiplane.yaml").sweep.variants]
    for names in (variants, range(40)):
        styles = {(style["color"], style["ls"]) for style in looks([str(name) for name in names]).values()}
        assert len(styles) == len(names) > 5
