"""Solve, stopped anywhere and resumed: the same bits as an uninterrupted solve."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from equality import assert_same_path
from solved import PATHS, SINGLE, options_of, path_of, solved, stopped_and_resumed
from spreads import backwards
from tiny import TINY, multiclass

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import STEP_RULES
from gapwise.stages.solver.options import SAMPLERS, MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.rules import two_sided
from gapwise.storage.commits import CommitStore
from gapwise.storage.results import read_iterations, read_path, read_trace


def same_bits(
    folder: Path,
    problem: Problem,
    options: MethodOptions,
    path: PathOptions,
    stops: Iterable[int],
    least: int,
    **more: Any,
) -> Status:
    """Solved at once and stopped at least so often, it has the same bits; returns how the whole solve ended."""
    status = solved(problem, folder / "whole", options, path)
    assert stopped_and_resumed(problem, folder / "parts", options, path, stops, **more) >= least
    assert_same_path(folder / "whole", folder / "parts")
    return status


GRID = {"rule": "grid", "lambdas": [0.3, 0.05], "tolerance": 1e-4}
CONE = "multiclass_cone"
AVERAGES = {"method": "mpbcfw", "max_passes": 40.0}
FINE = {"eps": 0.03, "lambda_min": 0.02}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[int, ...]]] = {
    # every sampler, kind of step and cache; which of them meet does not matter, as each packs a state of its own
    **{
        sampler: ("multiclass", {"sampler": sampler, "step": step, "cache": cache, "max_passes": 30.0}, SINGLE, (3, 5))
        for sampler, step, cache in zip(SAMPLERS, itertools.cycle(STEP_RULES), itertools.cycle(("none", "gap")))
    },
    **{
        kind: (name, {"rebase_steps": 4}, path, tuple(np.random.default_rng(len(name)).integers(0, 6, size=4).tolist()))
        for (kind, path), name in zip(PATHS.items(), itertools.cycle((CONE, "chain")))
    },
    "accelerated": (CONE, {"method": "accelerated"}, PATHS["two_sided"], (1, 2, 3)),
    "at mean": (CONE, {"method": "accelerated_at_mean"}, PATHS["two_sided"], (1, 2, 3)),
    "at mean of one lambda": (CONE, {"method": "accelerated_at_mean"}, {**SINGLE, "tolerance": 1e-6}, (1, 2, 3)),
    "mpbcfw": (CONE, {"method": "mpbcfw"}, PATHS["paper"], (1, 2, 3)),
    "fw": (CONE, {"method": "fw"}, {**PATHS["paper"], "lambda_min": 1.0}, (1, 2, 3)),  # it needs many passes
    "degree": ("multiclass", {"sampler": "gap", "degree": 2.0, "refresh_every": 0}, FINE, (7, 3, 1)),
    "capacity": ("multiclass", {"sampler": "permutation", "capacity": 2}, FINE, (7, 3, 1)),
    "average": ("chain", {**AVERAGES, "averaging": "weighted", "sampler": "gap", "step": "pairwise"}, GRID, (3, 1, 1)),
    "two averages": (
        "chain", {**AVERAGES, "averaging": "two_track", "sampler": "permutation", "step": "fw"}, GRID, (3, 1, 1)
    ),
}  # fmt: skip
"""Structure, choices of the method, path, and after how many rebase points it is stopped."""


@pytest.mark.parametrize("case", CASES)
def test_resume__is_bit_equal(tmp_path: Path, case: str) -> None:
    name, choices, path, stops = CASES[case]
    problem = multiclass(n=9) if "max_passes" in choices and name == "multiclass" else TINY[name]()
    least = 1 if path is SINGLE and "max_passes" in choices else 3 if path is GRID else 2
    status = same_bits(tmp_path, problem, options_of(**choices), path_of(**path), stops, least)
    assert status is Status.CONVERGED or "max_passes" in choices
    if case in PATHS:
        breakpoints = read_path(tmp_path / "whole" / "path.zarr")[0]["lambda"].size
        assert breakpoints >= {"single": 1, "grid_relative": 2}.get(case, 3)
    if path is GRID:
        assert read_iterations(tmp_path / "whole")["planes"].size > 10


def test_resume__is_bit_equal_between_two_solved_lambdas(tmp_path: Path, monkeypatch) -> None:
    """Steps many times too long: lambdas are solved between others, which wait in the committed state."""
    monkeypatch.setattr(two_sided, "THETA", (4.0, 6.0))
    stops = np.random.default_rng(0).integers(0, 4, size=6).tolist()
    path = path_of(**PATHS["two_sided"])
    assert same_bits(tmp_path, TINY[CONE](), options_of(rebase_steps=4), path, stops, 4) is Status.CONVERGED
    assert np.any(np.diff(read_trace(tmp_path / "whole")["lambda"]) > 0.0)
    assert np.all(np.diff(read_path(tmp_path / "parts" / "path.zarr", ("lambda",))[0]["lambda"]) < 0.0)


def test_resume__does_not_depend_on_the_workers(tmp_path: Path) -> None:
    same_bits(tmp_path, multiclass(n=40), options_of(), path_of(), (5, 9), 1, spread=Spread(backwards))


def test_commits__at_every_point_or_never_give_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    problem, options, path = TINY["multiclass"](), options_of(), path_of(**PATHS["grid_keep_dual"])
    solved(problem, tmp_path / "never", options, path)
    assert not (tmp_path / "never" / "state").exists()
    made = []
    commit = CommitStore.commit
    monkeypatch.setattr(CommitStore, "commit", lambda *args: (made.append(1), commit(*args)))
    points = []
    solved(problem, tmp_path / "always", options, path, every_seconds=0.0, report=points.append)
    assert len(made) == len(points) >= 5
    assert_same_path(tmp_path / "never", tmp_path / "always")
