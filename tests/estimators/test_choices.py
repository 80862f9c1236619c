"""Parameters become the options that the presets of conf/ have; errors name the parameter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from configs import composed

from gapwise.pipeline.config.settings import read
from gapwise.pipeline.estimators.choices import path_options, seed_of, solver_options, workers_of


@pytest.mark.parametrize("preset", ["accelerated", "bcpfw_gap_cache", "expensive_oracle", "mpbcpfw", "ssg"])
def test_preset__is_that_of_the_pipeline(preset: str) -> None:
    theirs = read(composed(f"solver={preset}", "path=single")).solver
    if not theirs.certifies:
        with pytest.raises(ValueError, match=f"solver: expected auto, .*, got '{preset}'"):
            solver_options(preset, path=False, max_passes=None, max_seconds=None)
        return
    assert solver_options(preset, path=False, max_passes=None, max_seconds=None) == theirs


def test_limits__are_those_that_were_given() -> None:
    options = solver_options("auto", path=False, max_passes=7, max_seconds=None)
    assert (options.name, options.max_passes, options.max_seconds) == ("accelerated", 7.0, math.inf)
    assert solver_options("auto", path=True, max_passes=None, max_seconds=3).name == "bcpfw_gap_cache"
    python = [
        solver_options("auto", path=path, max_passes=1, max_seconds=3, calls_python=True) for path in (True, False)
    ]
    assert [options.name for options in python] == ["expensive_oracle"] * 2


def test_lam__is_one_number_a_grid_or_the_path() -> None:
    goal: dict[str, Any] = {"n": 8, "tolerance": 0.01, "eps": None}
    assert path_options("1/n", **goal).lam == 0.125
    assert path_options(np.float64(0.5), **goal).relative
    assert path_options([0.1, 1], **goal).lambdas == [1.0, 0.1]
    assert path_options("path", **goal).eps == 0.02
    single = path_options(0.5, **{**goal, "eps": 0.2})
    expensive = solver_options("expensive_oracle", path=True, max_passes=None, max_seconds=None)
    assert path_options("path", **goal).for_method(expensive).kappa == 0.84
    assert single.for_method(expensive) == single
    assert (single.tolerance, single.relative) == (0.2, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lam": "best"}, "lam: expected a number > 0, '1/n' or 'path', got 'best'"),
        ({"lam": float("nan")}, "lam: expected a number > 0"),
        ({"lam": [1, 1]}, "lam: path.lambdas: expected different values"),
        ({"eps": -1}, "eps: expected a number > 0, or None, got -1"),
    ],
)
def test_path_options__name_the_parameter(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        path_options(**{"lam": 0.1, "n": 3, "tolerance": 0.1, "eps": None, **given})


@pytest.mark.parametrize("name", ["sgd", "bcfw_gap_gap", "bcafw", None])
def test_unknown_solver__is_refused_with_the_known_ones(name: Any) -> None:
    with pytest.raises(ValueError, match=r"solver: expected auto, accelerated, .* mpbcpfw, got"):
        solver_options(name, path=False, max_passes=None, max_seconds=None)


def test_seed_and_workers() -> None:
    assert seed_of(7) == 7
    assert seed_of(np.random.RandomState(3)) == seed_of(np.random.RandomState(3))
    assert workers_of(None) == 1
    assert workers_of(3) == 3
    assert workers_of(-1) >= 1
    with pytest.raises(ValueError, match="n_jobs: expected a whole number other than 0, or None, got 0"):
        workers_of(0)
