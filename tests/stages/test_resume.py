"""Solve, stopped anywhere and resumed: the same bits as an uninterrupted solve."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from equality import assert_same_path
from solved import (
    PATHS,
    SINGLE,
    DieAfter,
    Killed,
    StopAfter,
    options_of,
    path_of,
    solved,
    stopped_and_resumed,
)
from spreads import backwards
from tiny import TINY, multiclass

from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.codes import STEP_RULES
from gapwise.stages.solver.options import SAMPLERS, Status
from gapwise.stages.solver.path.rules import two_sided
from gapwise.storage.commits import CommitStore
from gapwise.storage.results import read_iterations, read_path, read_trace

MEMBERS = [
    (sampler, step, ("none", "gap")[number % 2])
    for number, (sampler, step) in enumerate(zip(SAMPLERS, itertools.cycle(STEP_RULES), strict=False))
]
"""Every sampler, kind of step and cache; which of them meet does not matter, as each packs a state of its own."""


@pytest.mark.parametrize(("sampler", "step", "cache"), MEMBERS)
def test_resume__is_bit_equal_for_every_member(tmp_path: Path, sampler, step, cache) -> None:
    problem = multiclass(n=9)
    options = options_of(sampler=sampler, step=step, cache=cache, max_passes=30.0)
    path = path_of(**SINGLE)
    whole = solved(problem, tmp_path / "whole", options, path)
    assert whole in (Status.CONVERGED, Status.PASS_LIMIT)
    stops = (3, 5)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 1
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(("kind", "name"), [*zip(PATHS, itertools.cycle(("multiclass_cone", "chain")), strict=False)])
def test_resume__is_bit_equal_along_every_path(tmp_path: Path, kind: str, name: str) -> None:
    problem, options, path = TINY[name](), options_of(rebase_steps=4), path_of(**PATHS[kind])
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    breakpoints = read_path(tmp_path / "whole" / "path.zarr")[0]["lambda"].size
    assert breakpoints >= {"single": 1, "grid_relative": 2}.get(kind, 3)
    rng = np.random.default_rng(len(name))
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, rng.integers(0, 6, size=4)) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_resume__is_bit_equal_between_two_solved_lambdas(tmp_path: Path, monkeypatch) -> None:
    """Steps many times too long: lambdas are solved between others, which wait in the committed state."""
    monkeypatch.setattr(two_sided, "THETA", (4.0, 6.0))
    problem, options, path = TINY["multiclass_cone"](), options_of(rebase_steps=4), path_of(**PATHS["two_sided"])
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    trace = read_trace(tmp_path / "whole")["lambda"]
    assert np.any(np.diff(trace) > 0.0)
    stops = np.random.default_rng(0).integers(0, 4, size=6)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 4
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
    lams = read_path(tmp_path / "parts" / "path.zarr", ("lambda",))[0]["lambda"]
    assert np.all(np.diff(lams) < 0.0)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("accelerated", "two_sided"),
        ("accelerated_at_mean", "two_sided"),
        ("accelerated_at_mean", "single"),
        ("mpbcfw", "paper"),
        ("fw", "paper"),
    ],
)
def test_resume__is_bit_equal_for_every_method(tmp_path: Path, method: str, kind: str) -> None:
    problem, options = TINY["multiclass_cone"](), options_of(method=method)
    more = {"tolerance": 1e-6} if kind == "single" else {}
    if method == "fw":  # it needs many passes for the same gap
        more = {"lambda_min": 1.0}
    path = path_of(**{**PATHS[kind], **more})
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, (1, 2, 3)) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    "choices",
    [
        {"sampler": "gap", "degree": 2.0, "refresh_every": 0},
        {"sampler": "permutation", "capacity": 2},
    ],
    ids=["degree", "capacity"],
)
def test_resume__is_bit_equal_with_every_other_choice(tmp_path: Path, choices) -> None:
    problem, options = TINY["multiclass"](), options_of(**choices)
    path = path_of(eps=0.03, lambda_min=0.02)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(2).integers(1, 9, size=3)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 2
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


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


def test_resume__from_the_last_commit_of_a_process_that_died(tmp_path: Path) -> None:
    """What was solved since the last commit is solved again, to the same bits."""
    problem, options, path = TINY["multiclass"](), options_of(), path_of(lambda_min=0.02)

    solved(problem, tmp_path / "whole", options, path)
    assert solved(problem, tmp_path / "parts", options, path, stop=StopAfter(4)) is Status.INTERRUPTED
    with pytest.raises(Killed):
        solved(problem, tmp_path / "parts", options, path, stop=DieAfter(6))
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_resume__does_not_depend_on_the_workers(tmp_path: Path) -> None:
    problem, options, path = multiclass(n=40), options_of(), path_of()

    solved(problem, tmp_path / "whole", options, path)
    stopped_and_resumed(problem, tmp_path / "parts", options, path, [5, 9], spread=Spread(backwards))
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("averaging", "sampler", "step"), [("weighted", "gap", "pairwise"), ("two_track", "permutation", "fw")]
)
def test_resume__is_bit_equal_with_averages_of_multiplane(tmp_path: Path, averaging, sampler, step) -> None:
    problem = TINY["chain"]()
    options = options_of(method="mpbcfw", averaging=averaging, sampler=sampler, step=step, max_passes=40.0)
    path = path_of(rule="grid", lambdas=[0.3, 0.05], tolerance=1e-4)
    solved(problem, tmp_path / "whole", options, path)
    stops = np.random.default_rng(3).integers(1, 4, size=3)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 3
    assert_same_path(tmp_path / "whole", tmp_path / "parts")
    assert read_iterations(tmp_path / "whole")["planes"].size > 10
