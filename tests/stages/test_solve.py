"""Solve, stopped anywhere and going on: the same bits as if nothing had happened (DESIGN 3.2)."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny import TINY, multiclass

from stages.init_path import init_path
from stages.solve import solve
from stages.solver import two_sided
from stages.solver.options import SAMPLERS, SCHEDULES, STEPS, CacheOptions, PathOptions, SolverOptions, Status
from stages.solver.spread import Spread
from storage import files
from storage.commits import CommitStore, StateError
from storage.results import read_path, read_trace

LOWEST = 0.1
MEASURED = {"seconds", "timestamp_ms"}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory in memory, where there is one: commits are made by the hundred."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    """Nothing here loses power."""
    monkeypatch.setattr(files.os, "fsync", lambda fd: None)


def options_of(**choices) -> SolverOptions:
    cache = CacheOptions(kind=choices.pop("cache", "gap"), capacity=choices.pop("capacity", 50))
    options = SolverOptions(cache=cache, **{"rebase_steps": 5, "refresh_every": 2, "max_passes": 500.0, **choices})
    options.check()
    return options


def path_of(**choices) -> PathOptions:
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, "lambda_min": LOWEST, **choices})
    path.check()
    return path


def solved(problem, run: Path, options: SolverOptions, path: PathOptions, **more) -> Status:
    return solve(problem, options, path, run, key="k", **{"seed": 3, "every_seconds": math.inf, **more})


class StopAfter:
    """stop() is True at the next rebase point but `left`."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def stopped_and_resumed(problem, run: Path, options: SolverOptions, path: PathOptions, stops, **more) -> int:
    """Solve to the end, stopping after so many rebase points each time; returns how often it was interrupted."""
    times = 0
    for left in stops:
        status = solved(problem, run, options, path, stop=StopAfter(left), **more)
        if status is not Status.INTERRUPTED:
            break
        assert not (run / "path.zarr").exists()
        times += 1
    else:
        solved(problem, run, options, path, **more)
    return times


def assert_same_results(one: Path, other: Path) -> None:
    (a, a_attrs), (b, b_attrs) = (read_path(run / "path.zarr") for run in (one, other))
    assert a_attrs == b_attrs
    assert a.keys() == b.keys()
    for name in a.keys() - MEASURED:
        assert a[name].dtype == b[name].dtype
        assert a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name
    rows, others = read_trace(one), read_trace(other)
    for name in rows.keys() - MEASURED:
        assert rows[name].tobytes() == others[name].tobytes(), name


SINGLE = {"kind": "single", "lam": 0.05, "tolerance": 2e-3}


@pytest.mark.parametrize(("sampler", "step", "cache"), list(itertools.product(SAMPLERS, STEPS, ("none", "gap"))))
@pytest.mark.parametrize("averaging", ["none", "weighted"])
def test_resume__is_bit_equal_for_every_member(tmp_path: Path, sampler, step, cache, averaging) -> None:
    problem = multiclass(n=9)
    options = options_of(sampler=sampler, step=step, cache=cache, averaging=averaging, max_passes=30.0)
    path = path_of(**SINGLE)
    whole = solved(problem, tmp_path / "whole", options, path)
    assert whole in (Status.CONVERGED, Status.PASS_LIMIT)
    stops = np.random.default_rng(0).integers(1, 6, size=4)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 1
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


PATHS = {
    "one_sided": {},
    "two_sided": {"rule": "two_sided", "kappa": 0.7, "eps": 0.01},
    "two_sided_relative": {"rule": "two_sided", "kappa": 0.7, "eps": 0.03, "relative": True},
    "paper": {"rule": "paper", "lambda_min": 0.5},
    "heuristic": {"kind": "heuristic", "kappa": 0.7},
    "heuristic_paper": {"kind": "heuristic", "rule": "paper", "kappa": 0.7, "lambda_min": 0.5},
    **{
        f"grid_{warm}": {"kind": "grid", "lambdas": [1.0, 0.3, 0.1], "warm_start": warm, "tolerance": 5e-3}
        for warm in ("none", "keep_primal", "keep_dual")
    },
    "grid_relative": {"kind": "grid", "lambdas": [0.1, 1.0], "relative": True, "tolerance": 0.02},
    "single": SINGLE,
}


@pytest.mark.parametrize("name", ["chain", "multiclass_cone", "segmentation"])
@pytest.mark.parametrize("kind", PATHS)
def test_resume__is_bit_equal_along_every_path(tmp_path: Path, name: str, kind: str) -> None:
    problem, options, path = TINY[name](), options_of(rebase_steps=4), path_of(**PATHS[kind])
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    breakpoints = read_path(tmp_path / "whole" / "path.zarr")[0]["lambda"].size
    assert breakpoints >= {"single": 1, "grid_relative": 2}.get(kind, 3)
    rng = np.random.default_rng(len(name))
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, rng.integers(0, 6, size=8)) >= 2
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("kind", ["one_sided", "two_sided", "paper"])
def test_start__that_is_known_is_not_found_again_and_changes_no_bit(tmp_path: Path, monkeypatch, kind: str) -> None:
    problem, options, path = TINY["chain"](), options_of(), path_of(**PATHS[kind])
    assert solved(problem, tmp_path / "found", options, path) is Status.CONVERGED
    start = init_path(problem, path)
    monkeypatch.setattr("stages.solve.init_path", None)
    assert solved(problem, tmp_path / "given", options, path, start=start) is Status.CONVERGED
    assert_same_results(tmp_path / "found", tmp_path / "given")


@pytest.mark.parametrize("name", ["chain", "multiclass_cone", "segmentation"])
def test_resume__is_bit_equal_between_two_solved_lambdas(tmp_path: Path, name: str, monkeypatch) -> None:
    """Steps many times too long: lambdas are solved between others, which wait in the committed state."""
    monkeypatch.setattr(two_sided, "THETA", (4.0, 6.0))
    problem, options, path = TINY[name](), options_of(rebase_steps=4), path_of(**PATHS["two_sided"])
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    trace = read_trace(tmp_path / "whole")["lambda"]
    assert np.any(np.diff(trace) > 0.0)
    stops = np.random.default_rng(len(name)).integers(0, 4, size=12)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 4
    assert_same_results(tmp_path / "whole", tmp_path / "parts")
    lams = read_path(tmp_path / "parts" / "path.zarr", ("lambda",))[0]["lambda"]
    assert np.all(np.diff(lams) < 0.0)


@pytest.mark.parametrize("schedule", [s for s in SCHEDULES if s != "steps"])
@pytest.mark.parametrize("kind", ["one_sided", "two_sided", "paper", "grid_keep_dual", "single"])
def test_resume__is_bit_equal_for_every_schedule(tmp_path: Path, schedule: str, kind: str) -> None:
    problem, options = TINY["multiclass_cone"](), options_of(schedule=schedule)
    path = path_of(**{**PATHS[kind], **({"tolerance": 1e-6} if kind == "single" else {})})
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(1).integers(1, 4, size=6)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 2
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    "choices",
    [
        {"sampler": "gap", "batch_step": True, "step": "fw"},
        {"sampler": "gap", "degree": 2.0},
        {"sampler": "permutation", "capacity": 2, "problem": "chain"},
        {"sampler": "uniform", "refresh_every": 0, "averaging": "none"},
        {"sampler": "gap", "batch_size": 4, "problem": "chain"},
        {"sampler": "permutation", "batch_size": 3, "cache": "none", "step": "away"},
    ],
    ids=["batch", "degree", "capacity", "no_refresh", "mini_batch", "mini_batch_permutation"],
)
def test_resume__is_bit_equal_with_every_other_choice(tmp_path: Path, choices) -> None:
    problem = TINY[choices.get("problem", "multiclass")]()
    options = options_of(**{name: value for name, value in choices.items() if name != "problem"})
    path = path_of(lambda_min=0.02)
    assert solved(problem, tmp_path / "whole", options, path) is Status.CONVERGED
    stops = np.random.default_rng(2).integers(1, 9, size=6)
    assert stopped_and_resumed(problem, tmp_path / "parts", options, path, stops) >= 2
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize("kind", ["one_sided", "heuristic", "grid_keep_primal"])
def test_commits__at_every_point_or_never_give_the_same_bits(tmp_path: Path, monkeypatch, kind: str) -> None:
    problem, options, path = TINY["multiclass"](), options_of(), path_of(**PATHS[kind])
    solved(problem, tmp_path / "never", options, path)
    assert not (tmp_path / "never" / "state").exists()
    made = []
    commit = CommitStore.commit
    monkeypatch.setattr(CommitStore, "commit", lambda *args: (made.append(1), commit(*args)))
    points = []
    solved(problem, tmp_path / "always", options, path, every_seconds=0.0, report=points.append)
    assert len(made) == len(points) >= 5
    assert_same_results(tmp_path / "never", tmp_path / "always")


def test_resume__from_the_last_commit_of_a_process_that_died(tmp_path: Path) -> None:
    """What was solved since the last commit is solved again, to the same bits."""
    problem, options, path = TINY["multiclass"](), options_of(), path_of(lambda_min=0.02)

    class Killed(BaseException):
        pass

    class DieAfter(StopAfter):
        def __call__(self) -> bool:
            if super().__call__():
                raise Killed
            return False

    solved(problem, tmp_path / "whole", options, path)
    assert solved(problem, tmp_path / "parts", options, path, stop=StopAfter(4)) is Status.INTERRUPTED
    with pytest.raises(Killed):
        solved(problem, tmp_path / "parts", options, path, stop=DieAfter(6))
    solved(problem, tmp_path / "parts", options, path)
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


def test_resume__does_not_depend_on_the_workers(tmp_path: Path) -> None:
    problem, options, path = multiclass(n=40), options_of(), path_of()

    def backwards(fn, ranges):
        results = {part: fn(*part) for part in reversed(ranges)}
        return [results[part] for part in ranges]

    solved(problem, tmp_path / "whole", options, path)
    stopped_and_resumed(problem, tmp_path / "parts", options, path, [5, 9], spread=Spread(backwards))
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


# -- the trace ----------------------------------------------------------------------------------------------------------
def test_trace__is_complete_after_a_resume_and_keeps_its_timestamps(tmp_path: Path) -> None:
    problem, options, path = TINY["multiclass"](), options_of(), path_of(lambda_min=0.02)
    seen = []
    stopped_and_resumed(problem, tmp_path, options, path, [5, 5, 5], observe=lambda rows: seen.append(rows.copy()))
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
    assert_same_results(tmp_path / "whole", parts)


def test_time_limit__before_the_first_breakpoint_commits_and_writes_no_path(tmp_path: Path) -> None:
    problem, path = TINY["multiclass"](), path_of()
    assert solved(problem, tmp_path / "parts", options_of(max_seconds=1e-9), path) is Status.TIME_LIMIT
    assert not (tmp_path / "parts" / "path.zarr").exists()
    assert solved(problem, tmp_path / "parts", options_of(), path) is Status.CONVERGED
    solved(problem, tmp_path / "whole", options_of(), path)
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    ("limit", "status"), [({"max_passes": 3.0}, Status.PASS_LIMIT), ({"max_oracle_calls": 20.0}, Status.ORACLE_LIMIT)]
)
def test_limits__end_a_path_with_their_status(tmp_path: Path, limit, status) -> None:
    problem, path = TINY["multiclass"](), path_of(eps=1e-4, lambda_min=0.02)
    assert solved(problem, tmp_path, options_of(sampler="uniform", step="fw", **limit), path) is status
    arrays, attrs = read_path(tmp_path / "path.zarr")
    assert attrs["status"] == status
    assert attrs["status_meanings"][arrays["status"][-1]] == status
    assert arrays["gap"][-1] >= 1e-4


@pytest.mark.parametrize("kind", ["single", "grid_keep_dual"])
def test_limits__of_given_lambdas_are_the_status_of_the_whole(tmp_path: Path, kind: str) -> None:
    """Also when the breakpoint that met its limit was committed by an attempt before."""
    problem, path = TINY["multiclass"](), path_of(**{**PATHS[kind], "tolerance": 0.03})
    options = options_of(sampler="uniform", step="fw", cache="none", max_passes=6.0)
    assert solved(problem, tmp_path / "whole", options, path) is Status.PASS_LIMIT
    arrays, attrs = read_path(tmp_path / "whole" / "path.zarr")
    assert attrs["status"] == "PASS_LIMIT"
    assert solved(problem, tmp_path / "whole", options, path) is Status.PASS_LIMIT
    statuses = [attrs["status_meanings"][code] for code in arrays["status"]]
    assert statuses.count("PASS_LIMIT") == np.sum(arrays["gap"] > 0.03) > 0
    stopped_and_resumed(problem, tmp_path / "parts", options, path, [1, 2, 1, 2, 1, 2, 1])
    assert_same_results(tmp_path / "whole", tmp_path / "parts")


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
        patch.setattr("stages.solve.write_trace", die)
        with pytest.raises(Killed):
            solved(problem, tmp_path, options_of(), path)
    assert solved(problem, tmp_path, options_of(), path) is Status.CONVERGED
    assert read_trace(tmp_path)["gap"].size > 0


# -- seeds and identity ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sampler", ["uniform", "permutation", "gap"])
def test_seed__another_one_takes_another_way_to_the_same_place(tmp_path: Path, sampler: str) -> None:
    problem, options, path = multiclass(n=12), options_of(sampler=sampler), path_of(**SINGLE)
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
