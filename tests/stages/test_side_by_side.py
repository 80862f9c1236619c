"""`path.parallel`: lambdas solved side by side, certified as ever; the same bits for all workers, stops and kills."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from dense import optimum, primal_value
from equality import assert_same_path
from solved import Killed, StopAfter, options_of, path_of, solved
from tiny import TINY, chain, multiclass, multiclass_cone, python_oracle

from gapwise.pipeline.config.settings import read
from gapwise.stages.problems.operations import operations_of
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver import side_by_side
from gapwise.stages.solver.combinations import structure_capabilities
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.abreast import continued, next_lambdas
from gapwise.stages.solver.path.cells import SolvedPoint
from gapwise.stages.verify import verify
from gapwise.storage import sink
from gapwise.storage.commits import CommitStore
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path, read_trace

KINDS = {
    "two_sided": {"rule": "two_sided", "eps": 0.02, "kappa": 0.7},
    "relative": {"rule": "two_sided", "eps": 0.02, "kappa": 0.7, "relative": True},
    "anytime": {"rule": "anytime", "eps": 0.02, "kappa": 0.85},
}


class Copied:
    """Another process: it has the problem, and everything else reaches it, and comes back, pickled."""

    def __init__(self, problem) -> None:
        self.problem, self.done = problem, 0

    def __call__(self, fn, split, w, parts, places):
        return [fn(self.problem, w, np.array(part)) for part in parts]

    def jobs(self, jobs, split, stop):
        assert split == "train"
        answers = []
        for fn, state in jobs:
            if stop():
                return None
            fn, state = pickle.loads(pickle.dumps((fn, state)))
            answers.append(pickle.loads(pickle.dumps(fn(self.problem, state, lambda: False))))
            self.done += 1
        return answers


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["bcfw", "accelerated"])
def test_lanes__in_other_processes_have_the_same_bits(tmp_path: Path, kind: str, method: str) -> None:
    problem, options, path = multiclass_cone(), options_of(method=method), path_of(**KINDS[kind], parallel=3)
    elsewhere = Copied(problem)
    solved(problem, tmp_path / "threads", options, path, spread=Spread(workers=2))
    solved(problem, tmp_path / "elsewhere", options, path, spread=Spread(elsewhere=elsewhere))
    assert_same_path(tmp_path / "elsewhere", tmp_path / "threads")
    assert elsewhere.done >= read_path(tmp_path / "elsewhere" / "path.zarr")[0]["lambda"].size


@pytest.mark.slow
def test_lanes__that_are_given_up_elsewhere_are_solved_again(tmp_path: Path, monkeypatch) -> None:
    problem, options, path = chain(), options_of(), path_of(**KINDS["two_sided"], parallel=3)
    solved(problem, tmp_path / "whole", options, path)
    elsewhere = Copied(problem)
    status = solved(
        problem, tmp_path / "parts", options, path, stop=lambda: elsewhere.done >= 2, spread=Spread(elsewhere=elsewhere)
    )
    assert (status, elsewhere.done) == (Status.INTERRUPTED, 2)
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
def test_resume__on_threads_of_what_one_thread_can_use_is_refused_and_keeps_the_state(tmp_path: Path) -> None:
    problem, options = python_oracle(), options_of()
    path, elsewhere = path_of(rule="two_sided", eps=0.05, kappa=0.7, lambda_min=0.2, parallel=2), Copied(problem)
    stopped = solved(
        problem, tmp_path, options, path, stop=lambda: elsewhere.done >= 2, spread=Spread(elsewhere=elsewhere)
    )
    assert stopped is Status.INTERRUPTED
    with pytest.raises(ValueError, match="one thread at a time can use"):
        solved(problem, tmp_path, options, path, spread=Spread(workers=2))
    assert solved(problem, tmp_path, options, path) is Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["bcfw", "accelerated_at_mean"])
def test_result__is_the_same_for_one_two_and_three_workers(tmp_path: Path, kind: str, method: str) -> None:
    problem, options, path = multiclass_cone(), options_of(method=method), path_of(**KINDS[kind], parallel=3)
    for workers in (1, 2, 3):
        assert (
            solved(problem, tmp_path / f"{workers}", options, path, spread=Spread(workers=workers)) is Status.CONVERGED
        )
    assert_same_path(tmp_path / "2", tmp_path / "1")
    assert_same_path(tmp_path / "3", tmp_path / "1")


@pytest.mark.slow
def test_lanes__certify_lambdas_between_solved_ones_without_an_oracle_call(tmp_path: Path) -> None:
    problem, path = multiclass_cone(), path_of(rule="two_sided", eps=0.003, kappa=0.85, parallel=2)
    options, run = options_of(method="accelerated_at_mean"), tmp_path / "here"
    assert solved(problem, run, options, path) is Status.CONVERGED
    assert verify(problem, run)["certified"]
    assert 0 in read_path(run / "path.zarr")[0]["oracle_calls"]
    solved(problem, tmp_path / "elsewhere", options, path, spread=Spread(elsewhere=Copied(problem)))
    assert_same_path(tmp_path / "elsewhere", run)


@pytest.mark.slow
@pytest.mark.share(0.3)
@pytest.mark.parametrize("lanes", [2, 3, 8])
@pytest.mark.parametrize("name", sorted(TINY))
def test_path__of_every_structure_is_certified(tmp_path: Path, name: str, lanes: int) -> None:
    problem, options = TINY[name](), options_of()
    path = path_of(rule="two_sided", eps=0.05, kappa=0.7, lambda_min=0.2, parallel=lanes)
    traits = structure_capabilities(problem)
    spread = Spread(workers=2)
    if traits.one_thread or not traits.cone:
        with pytest.raises(ValueError, match="path"):
            solved(problem, tmp_path / "run", options, path, spread=spread)
        spread = Spread(elsewhere=Copied(problem))
        if not traits.cone:
            return
    assert solved(problem, tmp_path / "run", options, path, spread=spread) is Status.CONVERGED
    assert verify(problem, tmp_path / "run", samples=3)["certified"]
    arrays, attrs = read_path(tmp_path / "run" / "path.zarr")
    assert np.all(np.diff(arrays["lambda"]) < 0.0)
    assert np.all((arrays["gap"] >= 0.0) & (arrays["gap"] <= path.kappa * path.eps))
    trace = read_trace(tmp_path / "run")
    assert np.sum(arrays["oracle_calls"]) == trace["oracle_calls"][-1]
    for column in ("passes", "oracle_calls", "steps", "seconds"):
        assert np.all(np.diff(trace[column]) >= 0.0), column
    assert attrs["parallel"] == lanes


@functools.cache
def optimal(lam: float) -> float:
    return optimum(multiclass(), lam)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two_sided", "anytime"])
def test_model__of_every_lambda_is_as_good_as_a_dense_solver_says(tmp_path: Path, kind: str) -> None:
    problem, options, path = multiclass(), options_of(), path_of(**KINDS[kind], parallel=4)
    assert solved(problem, tmp_path / "run", options, path) is Status.CONVERGED
    model = open_path(tmp_path / "run")
    for lam in np.geomspace(0.1, 2.0 * float(model["lambda"][0]), 7).round(4):
        assert primal_value(problem, model.weights_at(lam).values, lam) - optimal(lam) <= path.eps * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_resume__after_any_stops_between_rounds_has_the_same_bits(tmp_path: Path, kind: str, monkeypatch) -> None:
    monkeypatch.setattr(side_by_side, "POLL", 60.0)  # asked at ends of rounds only
    problem, options, path = multiclass(), options_of(method="accelerated"), path_of(**KINDS[kind], parallel=2)
    solved(problem, tmp_path / "whole", options, path, spread=Spread(workers=2))
    stops = 0
    while solved(problem, tmp_path / "parts", options, path, stop=StopAfter(1 + stops % 2)) is Status.INTERRUPTED:
        stops += 1
    assert stops >= 2
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


class GivesUp:
    """A lane of round `number` that waits until its round is given up, once; it is also the `stop` that asks for that."""

    def __init__(self, number: int) -> None:
        self.left, self.asked, self.solve = number, False, side_by_side.solve_lane

    def __call__(self) -> bool:
        return self.asked

    def solve_lane(self, problem, setting, state, lane, given_up, warm_up=False):
        self.left -= 1
        if self.left == 0:
            self.asked = True
            while not given_up():
                pass
        return self.solve(problem, setting, state, lane, given_up)


@pytest.mark.slow
@pytest.mark.parametrize("lane", [1, 4, 6])
def test_stop__inside_a_round_gives_the_round_up(tmp_path: Path, monkeypatch, lane: int) -> None:
    problem, options, path = chain(), options_of(), path_of(**KINDS["two_sided"], parallel=3)
    solved(problem, tmp_path / "whole", options, path)
    stop = GivesUp(lane)
    monkeypatch.setattr(side_by_side, "solve_lane", stop.solve_lane)
    monkeypatch.setattr(side_by_side, "POLL", 0.01)
    status = solved(problem, tmp_path / "parts", options, path, stop=stop, spread=Spread(workers=3))
    assert status is Status.INTERRUPTED
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.0, 1e9])
def test_lane__that_fails_ends_the_walk_and_loses_no_round(tmp_path: Path, monkeypatch, kept: float) -> None:
    problem, options, path = multiclass(), options_of(), path_of(**KINDS["two_sided"], parallel=3)
    solved(problem, tmp_path / "whole", options, path)
    counted, solve = itertools.count(), side_by_side.solve_lane

    def failing(*arguments):
        if next(counted) == 5:
            raise MemoryError("no room")
        return solve(*arguments)

    monkeypatch.setattr(side_by_side, "solve_lane", failing)
    monkeypatch.setattr(sink, "KEPT_SECONDS", kept)  # no commit is due; the last offer is kept in memory, or none is
    with pytest.raises(MemoryError):
        solved(problem, tmp_path / "parts", options, path)
    monkeypatch.setattr(side_by_side, "solve_lane", solve)
    assert CommitStore(tmp_path / "parts" / "state", {"key": "k"}).load() is not None
    solved(problem, tmp_path / "parts", options, path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


def kill_after(run: Path, commits: int) -> None:
    """Solve, and kill this process, at the given number of commits, while the lanes of the next round are being solved."""
    left = itertools.count(1)
    solve = side_by_side.solve_lane
    doomed = False

    def committed(trace: np.ndarray) -> None:
        nonlocal doomed
        doomed = next(left) >= commits

    def dying(*arguments):
        if doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        return solve(*arguments)

    side_by_side.solve_lane = dying
    path = path_of(**KINDS["two_sided"], parallel=3)
    solved(multiclass(), run, options_of(), path, every_seconds=0.0, committed=committed, spread=Spread(workers=2))


@pytest.mark.slow
def test_kill__of_the_process_loses_no_committed_round(tmp_path: Path) -> None:
    path = path_of(**KINDS["two_sided"], parallel=3)
    solved(multiclass(), tmp_path / "whole", options_of(), path)
    for commits in (2, 3):
        process = multiprocessing.get_context("spawn").Process(target=kill_after, args=(tmp_path / "parts", commits))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    solved(multiclass(), tmp_path / "parts", options_of(), path)
    assert_same_path(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
def test_interrupt__in_the_main_thread_ends_all_lanes(tmp_path: Path, monkeypatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def stop() -> bool:
        if begun.is_set():
            raise Killed
        return False

    def endless(problem, setting, state, lane, given_up, warm_up=False):
        begun.set()
        for _ in range(10_000):
            if given_up():
                ended.set()
                break
            time.sleep(0.001)
        raise side_by_side.Abandoned

    monkeypatch.setattr(side_by_side, "solve_lane", endless)
    problem, path = multiclass(), path_of(**KINDS["two_sided"], parallel=3)
    with pytest.raises(Killed):
        solved(problem, tmp_path / "run", options_of(), path, stop=stop)
    assert ended.is_set()


@pytest.mark.slow
def test_anytime__goes_on_to_a_smaller_eps_as_if_it_had_been_asked_for_at_once(tmp_path: Path) -> None:
    problem, options = multiclass(), options_of()
    for run, levels in (("once", (0.01,)), ("twice", (0.1, 0.01))):
        for eps in levels:
            solved(problem, tmp_path / run, options, path_of(rule="anytime", eps=eps, kappa=0.85, parallel=3))
            assert read_path(tmp_path / run / "path.zarr", ())[1]["eps"] <= eps
    assert_same_path(tmp_path / "once", tmp_path / "twice")


@pytest.mark.parametrize(
    ("choices", "options", "expected"),
    [
        ({"rule": "one_sided"}, {}, "path.rule=one_sided hands out one lambda at a time"),
        ({"rule": "grid", "lambdas": [1.0, 0.5]}, {}, "path.rule=grid hands out one lambda at a time"),
        ({}, {"method": "mpbcfw"}, "mpbcfw records its outer iterations"),
    ],
)
def test_choices__that_cannot_be_solved_side_by_side_are_refused(choices, options, expected) -> None:
    path = path_of(**{"rule": "two_sided", "parallel": 2, **choices})
    with pytest.raises(ValueError, match=expected):
        Task(multiclass(), options_of(**options), path).check()


def test_structures__that_one_thread_can_use_are_refused() -> None:
    task = Task(python_oracle(), options_of(), path_of(rule="two_sided", parallel=2))
    with pytest.raises(ValueError, match="one thread at a time can use a PythonOracle"):
        task.check(Spread(workers=2))
    task.check(Spread(workers=1))
    task.check(Spread(elsewhere=Copied(python_oracle()), workers=2))


def test_snapshots__are_refused(tmp_path: Path) -> None:
    path = path_of(rule="two_sided", parallel=2)
    with pytest.raises(ValueError, match=r"snapshots.every_passes: .* side by side"):
        solved(multiclass(), tmp_path / "run", options_of(), path, every_passes=1.0)


def test_key__is_that_of_before_without_it_and_another_one_with_it() -> None:
    base, two, three = (read(composed(*words)) for words in ((), ("path.parallel=2",), ("path.parallel=3",)))
    assert "parallel" not in base.science["path"]
    assert len({settings.run_key({}) for settings in (base, two, three)}) == 3


def test_one__has_no_lanes() -> None:
    engine = Engine.begin(Task(multiclass(), options_of(), path_of(rule="two_sided", parallel=1)))
    assert engine.lanes is None
    assert "lanes" not in engine.pack().attrs


# -- where lanes begin ------------------------------------------------------------------------------------------------
def lanes_at(*lams: float, round_of: tuple[float, ...]) -> side_by_side.Lanes:
    setting = side_by_side.Setting(options_of(), 0, True, False, False, False)
    states = [side_by_side.LaneState(lam, {}, {}) for lam in lams]
    return side_by_side.Lanes(multiclass(), setting, (), states, list(round_of))


def test_origins__are_the_nearest_lambdas_but_for_those_that_try_the_start() -> None:
    lanes = lanes_at(100.0, 10.0, 4.0, 1.0, round_of=(6.0, 3.0, 0.5, 0.1))
    assert lanes.origins() == [2, 0, 3, 3]  # the second tries
    lanes.tried = side_by_side.TRIED
    assert lanes.origins() == [2, 2, 3, 3]
    lanes.cold = True
    assert lanes.origins() == [2, 0, 0, 0]
    assert lanes_at(100.0, round_of=(20.0, 5.0)).origins() == [0, 0]
    assert lanes_at(7.0, 60.0, 1.0, round_of=(6.0,)).origins() == [2]  # not the start, though that is nearest


@pytest.mark.parametrize(("calls", "cold"), [((100, 120), True), ((100, 151), False)])
def test_start__is_where_lanes_begin_if_it_costs_little_more(calls: tuple[int, int], cold: bool) -> None:
    lanes = lanes_at(100.0, 10.0, round_of=(6.0, 3.0))
    assert operations_of(lanes.problem).oracle > 0.0
    lanes.begun = lanes.origins()
    empty = side_by_side.Answer(*[None] * len(side_by_side.Answer._fields))
    lanes.learn([empty._replace(calls=c, steps=0) for c in calls])
    assert (lanes.cold, lanes.tried) == (cold, 1)
    lanes.begun = [1, 1]
    lanes.learn([empty._replace(calls=1, steps=0)] * 2)  # they do not compare
    assert (lanes.cold, lanes.tried) == (cold, 1)


def test_ahead__is_a_ladder_below_the_last_lambda() -> None:
    last = SolvedPoint(1.0, 0.0, 0.5, 0.5, 2.0, 2.0)
    above = SolvedPoint(10.0, 0.0, 0.9, 0.9, 0.1, 2.0)
    halves = functools.partial(next_lambdas, last, above, lambda p: 0.5 * p.lam)
    assert halves(0.0, 0.0, 3) == [0.5, 0.25, 0.125]
    assert halves(0.2, 0.0, 3) == [0.5, 0.25, 0.2]
    assert halves(0.2, 0.0, 9) == [0.5, 0.25, 0.2]
    assert halves(0.0, 0.4, 9) == [0.5, 0.25]  # R = 0.5 (0.5 / 0.9)^(log_10 2) at 0.5, and so on
    assert halves(0.0, 0.6, 9) == [0.5]
    further = continued(last, above, 0.1)
    assert (further.lam, further.norm2) == (0.1, pytest.approx(40.0))
    assert further.hinge == pytest.approx(0.5 * 0.5 / 0.9)
    assert continued(last, None, 0.1) == last._replace(lam=0.1)
