"""`path.rule=anytime`: certified wherever it is stopped, taken on to a smaller eps, the same bits whatever stopped it."""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from dense import optimum, primal_value
from equality import assert_same_path
from solved import StopAfter, options_of, solved
from tiny import multiclass, multiclass_cone

from gapwise.pipeline.config.settings import read
from gapwise.pipeline.stage_graph.solve import unfinished
from gapwise.pipeline.tracking.curves import convergence
from gapwise.stages.init_path import init_path
from gapwise.stages.problems.parallel import HERE
from gapwise.stages.solver.counts import CERTIFIED
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.verify import CertificateError, asked_for, verify
from gapwise.storage.paths import open_path
from gapwise.storage.results import read_path, read_trace

PROBLEMS = {"multiclass": multiclass, "separable": lambda: multiclass(width=9, classes=3), "cone": multiclass_cone}
LOWEST = {"multiclass": 0.0, "separable": 0.0, "cone": 0.05}


@functools.cache
def problem_of(name: str):
    return PROBLEMS[name]()


@functools.cache
def optimal(name: str, lam: float) -> float:
    return optimum(problem_of(name), lam)


def path_of(eps: float, name: str = "multiclass", **choices) -> PathOptions:
    path = PathOptions(**{"rule": "anytime", "eps": eps, "lambda_min": LOWEST[name], **choices})
    path.check()
    return path


def assert_certified(name: str, run: Path) -> float:
    """The true suboptimality of w(lambda) is at most the eps that path.zarr claims, which is returned; verify agrees."""
    problem, solved_path = problem_of(name), open_path(run)
    eps, low = float(solved_path.attrs["eps"]), float(solved_path["cell_low"][-1])
    for lam in np.geomspace(max(low, 1e-3), 2.0 * float(solved_path["lambda"][0]), 5).round(4):
        if lam >= low:
            assert primal_value(problem, solved_path.weights_at(lam).values, lam) - optimal(name, lam) <= eps * (
                1 + 1e-6
            )
    arrays, attrs = read_path(run / "path.zarr")
    bound = path_of(1.0).can.bound(arrays, attrs, np.geomspace(max(low, 1e-6), 1e4, 200))
    assert np.nanmax(bound) <= eps
    assert verify(problem, run, samples=2)["certified"]
    return eps


@pytest.mark.parametrize(("name", "method", "stops"), [("separable", "bcfw", 7), ("cone", "accelerated_at_mean", 3)])
def test_stopped_anywhere__is_certified_everywhere_and_ends_with_the_same_bits(
    tmp_path: Path, name: str, method: str, stops: int
) -> None:
    problem, options, path = problem_of(name), options_of(method=method, rebase_steps=20), path_of(0.05, name)
    status = solved(problem, tmp_path / "whole", options, path)
    assert status in (Status.CONVERGED, Status.LAMBDA_NEGLIGIBLE)
    run, reached = tmp_path / "parts", []
    while solved(problem, run, options, path, stop=StopAfter(stops)) is Status.INTERRUPTED:
        if (run / "path.zarr").exists():
            assert read_path(run / "path.zarr", ())[1]["status"] == "INTERRUPTED"
            reached.append(float(read_path(run / "path.zarr", ())[1]["eps"]))
            if len(reached) == 3:
                assert_certified(name, run)
    assert reached == sorted(reached, reverse=True)
    assert len({*reached}) > 1
    assert assert_certified(name, run) <= 0.05 < reached[0]
    assert_same_path(tmp_path / "whole", run)
    arrays, trace = read_path(run / "path.zarr")[0], read_trace(run)
    # those of lambdas that were solved again as well
    assert np.sum(arrays["oracle_calls"]) == trace["oracle_calls"][-1]
    assert np.sum(arrays["effective_passes"]) == pytest.approx(trace["passes"][-1])
    assert trace[CERTIFIED][-1] == read_path(run / "path.zarr", ())[1]["eps"]
    assert any(point.name == "vs_passes/log10_every_lambda_within" for point in convergence(trace))


def test_smaller_eps__goes_on_as_if_it_had_been_asked_for_at_once(tmp_path: Path) -> None:
    problem, options = problem_of("multiclass"), options_of(rebase_steps=20)
    solved(problem, tmp_path / "once", options, path_of(0.01))
    for eps, again in ((0.1, False), (0.2, True), (0.01, False)):
        before = (tmp_path / "twice" / "path.zarr").stat().st_mtime_ns if again else 0
        solved(problem, tmp_path / "twice", options, path_of(eps))
        assert (tmp_path / "twice" / "path.zarr").stat().st_mtime_ns == before or not again
        assert read_path(tmp_path / "twice" / "path.zarr", ())[1]["eps"] <= eps
        assert [*(tmp_path / "twice" / "state").glob("g*.zarr")]  # from which a smaller eps goes on
    assert_same_path(tmp_path / "once", tmp_path / "twice")


def test_limit__ends_with_a_certificate_of_the_eps_reached(tmp_path: Path) -> None:
    problem, options = problem_of("multiclass"), options_of()
    assert solved(problem, tmp_path / "few", options, path_of(1e-3, max_breakpoints=4)) is Status.PASS_LIMIT
    assert 0.01 < assert_certified("multiclass", tmp_path / "few") < 1.0
    short = dataclasses.replace(options, max_passes=14.0)
    assert solved(problem, tmp_path / "short", short, path_of(1e-4)) is Status.PASS_LIMIT
    assert 1e-4 < assert_certified("multiclass", tmp_path / "short") < 1.0


def test_rounding__that_leaves_no_smaller_eps_is_no_eps_reached_and_is_verified(tmp_path: Path, monkeypatch) -> None:
    """As if rounding were ten million times larger, so that it shows after a few lambdas."""
    problem, path = problem_of("separable"), path_of(1e-4, "separable")
    monkeypatch.setattr("gapwise.stages.solver.path.axis.FLOOR", 0.01)
    monkeypatch.setattr("gapwise.stages.certify.ends.LEAST", 0.01)
    assert solved(problem, tmp_path, options_of(), path) is Status.ROUNDING_LIMIT
    attrs = read_path(tmp_path / "path.zarr", ())[1]
    assert attrs["axis_end"] == "CONVERGED"
    assert 1e-4 < attrs["eps"] < 0.1
    asked = asked_for(path, "bcfw", seed=3, key="k", status="ROUNDING_LIMIT")
    assert verify(problem, tmp_path, asked=asked, samples=2)["certified"]
    monkeypatch.setattr("gapwise.stages.certify.ends.LEAST", 1e-9)
    with pytest.raises(CertificateError, match=r"lambda .* says that rounding leaves no eps below 0\.0"):
        verify(problem, tmp_path, asked=asked, samples=2)


def test_eps__is_no_part_of_the_key_and_says_whether_there_is_more_to_do() -> None:
    asked = [read(composed("path.rule=anytime", f"path.eps={eps}")) for eps in (0.1, 0.01)]
    assert asked[0].science == asked[1].science
    assert read(composed("path.eps=0.1")).science != read(composed("path.eps=0.01")).science
    facts = {"status": "CONVERGED", "max_seconds": math.inf, "certified": 0.09}
    assert [unfinished(facts, settings) for settings in asked] == [False, True]
    assert not unfinished({**facts, "status": "PASS_LIMIT"}, asked[1])


def test_certified_eps__of_a_first_lambda_far_above_is_its_hinge() -> None:
    """All bounds above it are far smaller, but below it nothing else holds."""
    problem, path = problem_of("multiclass"), path_of(1e-3, max_breakpoints=1)
    start = init_path(problem, path, HERE)
    far = dataclasses.replace(start, lam=50.0 * start.lam)
    engine = Engine.begin(Task(problem, options_of(), path, start=far))
    (only,) = engine.walk()
    assert only.point.hinge > 0.9 * start.hinge_at_zero
    assert engine.rule.interval(0)[1].bound < 0.1 * only.point.hinge
    assert only.point.hinge < engine.rule.reached < 1.03 * only.point.hinge
