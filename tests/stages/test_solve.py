"""Solve: its trace, its limits, when it counts as complete, and which states it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from configs import composed
from equality import assert_same_path
from solved import (
    PATHS,
    SINGLE,
    StopAfter,
    options_of,
    path_of,
    solved,
    stopped_and_resumed,
)
from tiny import TINY, multiclass

from gapwise.pipeline.run import run
from gapwise.stages.solver.options import Status
from gapwise.storage.commits import StateError
from gapwise.storage.results import read_path, read_trace


# -- the trace ----------------------------------------------------------------------------------------------------------
def test_trace__is_complete_after_a_resume_and_keeps_its_timestamps(tmp_path: Path) -> None:
    problem, options, path = TINY["multiclass"](), options_of(), path_of(lambda_min=0.02)
    seen = []
    stopped_and_resumed(problem, tmp_path, options, path, [5, 5, 5], committed=lambda rows: seen.append(rows.copy()))
    arrays, trace = read_path(tmp_path / "path.zarr")[0], read_trace(tmp_path)
    assert len(seen) >= 3
    for rows in seen:
        np.testing.assert_array_equal(np.array(list(trace.values())).T[: len(rows)], rows)
    assert trace["breakpoint"].tolist() == sorted(trace["breakpoint"])
    assert (np.diff(trace["timestamp_ms"]) >= 0).all()
    assert (np.diff(trace["seconds"]) > 0).all()
    assert (np.diff(trace["oracle_calls"]) > 0).all()
    last = [np.flatnonzero(trace["breakpoint"] == b)[-1] for b in range(arrays["lambda"].size)]
    for name in ("lambda", "gap", "dual", "primal"):
        np.testing.assert_array_equal(trace[name][last], arrays[name])
    # every oracle call belongs to a breakpoint, the path's start and a first lambda that was given up included
    np.testing.assert_array_equal(trace["oracle_calls"][last], np.cumsum(arrays["oracle_calls"]))
    np.testing.assert_allclose(arrays["effective_passes"], arrays["oracle_calls"] / problem.n, rtol=1e-15)
    assert 0.0 <= arrays["seconds"].sum() - trace["seconds"][-1] < 0.1


# -- limits ---------------------------------------------------------------------------------------------------------------
def test_time_limit__leaves_what_there_is_and_goes_on_when_given_more(tmp_path: Path) -> None:
    problem, path = TINY["multiclass"](), path_of(lambda_min=0.02)
    solved(problem, tmp_path / "whole", options_of(), path)
    parts = tmp_path / "parts"
    assert solved(problem, parts, options_of(), path, stop=StopAfter(12)) is Status.INTERRUPTED
    assert solved(problem, parts, options_of(max_seconds=1e-9), path) is Status.TIME_LIMIT
    arrays, attrs = read_path(parts / "path.zarr")
    assert attrs["status"] == "TIME_LIMIT"
    total = read_path(tmp_path / "whole" / "path.zarr")[0]["lambda"].size
    assert 1 <= arrays["lambda"].size < total
    assert solved(problem, parts, options_of(), path) is Status.CONVERGED
    assert_same_path(tmp_path / "whole", parts)


def test_limits__of_given_lambdas_are_the_status_of_the_whole(tmp_path: Path) -> None:
    """Also when the breakpoint that met its limit was committed by an invocation before."""
    problem, path = TINY["multiclass"](), path_of(**{**PATHS["grid_keep_dual"], "tolerance": 0.03})
    options = options_of(sampler="uniform", step="fw", cache="none", max_passes=6.0)
    assert solved(problem, tmp_path / "whole", options, path) is Status.PASS_LIMIT
    arrays, attrs = read_path(tmp_path / "whole" / "path.zarr")
    assert attrs["status"] == "PASS_LIMIT"
    assert solved(problem, tmp_path / "whole", options, path) is Status.PASS_LIMIT
    statuses = [attrs["status_meanings"][code] for code in arrays["status"]]
    assert statuses.count("PASS_LIMIT") == np.sum(arrays["gap"] > 0.03) > 0
    stopped_and_resumed(problem, tmp_path / "parts", options, path, [1, 2, 1])
    assert_same_path(tmp_path / "whole", tmp_path / "parts")


def test_complete__is_known_at_once(tmp_path: Path) -> None:
    problem, path = TINY["multiclass"](), path_of()
    solved(problem, tmp_path, options_of(), path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    asked = StopAfter(0)
    assert solved(problem, tmp_path, options_of(), path, stop=asked) is Status.CONVERGED
    assert asked.left == 0
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_complete__means_the_trace_is_there_too(tmp_path: Path, monkeypatch) -> None:
    """path.zarr says that a solve is done, so it comes last."""
    problem, path = TINY["multiclass"](), path_of()

    class Killed(BaseException):
        pass

    def die(*args):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("gapwise.stages.solve.write_trace", die)
        with pytest.raises(Killed):
            solved(problem, tmp_path, options_of(), path)
    assert solved(problem, tmp_path, options_of(), path) is Status.CONVERGED
    assert read_trace(tmp_path)["gap"].size > 0


# -- seeds and identity ---------------------------------------------------------------------------------------------------
def test_seed__another_one_takes_another_way_to_the_same_place(tmp_path: Path) -> None:
    problem, options, path = multiclass(n=12), options_of(sampler="gap"), path_of(**SINGLE)
    for seed in (0, 0, 1):
        solved(problem, tmp_path / f"{seed}-{len(list(tmp_path.iterdir()))}", options, path, seed=seed)
    first, again, other = (read_path(run / "path.zarr")[0] for run in sorted(tmp_path.iterdir()))
    assert first["weights"].tobytes() == again["weights"].tobytes()
    assert first["weights"].tobytes() != other["weights"].tobytes()
    assert abs(first["dual"][0] - other["dual"][0]) <= 2e-3


def test_state__of_another_configuration_is_refused(tmp_path: Path) -> None:
    problem, options, path = TINY["multiclass"](), options_of(), path_of()
    solved(problem, tmp_path, options, path, stop=StopAfter(3), science={"solver.step": "pairwise"})
    with pytest.raises(StateError, match=r"solver\.step: 'pairwise' there, 'away' here"):
        solved(problem, tmp_path, options, path, science={"solver.step": "away"})


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "breakpoints", "passes"), [("two_sided", 7, 30.6), ("paper", 154, 222.5)])
def test_ocr_small__takes_as_many_passes_as_before(
    shared_data: Path, tmp_path: Path, rule: str, breakpoints: int, passes: float
) -> None:
    """Rounding moves the passes: between two processors by up to 6.6 %."""
    words = [
        f"dataset.root={shared_data / 'ocr'}",
        f"run.root={tmp_path}",
        "tracking=none",
        "run.until=solve",
    ]
    assert run(composed("+experiment=regpath_ocr", f"path.rule={rule}", "path.eps=0.1", *words)) == 0
    (target,) = tmp_path.glob("*/path.zarr")
    made = read_path(target, ("effective_passes",))[0]["effective_passes"]
    assert (made.size, made.sum()) == (pytest.approx(breakpoints, rel=0.02), pytest.approx(passes, rel=0.07))
