"""A hundred thousand noisy blocks: sums at small lambda, whole paths, and certificates that hold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from configs import composed
from tiny import chain, multiclass

from gapwise.pipeline.run import run
from gapwise.stages.certify.recompute import rebuild_zero
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.state import derive, new_state, vertices_pool
from gapwise.stages.verify import verify

N = 100_000
LAM = 6e-11
UNIT = 0.5 * float(np.finfo(float).eps)


def large_chain(n: int, seed: int = 0) -> Problem:
    """Five hundred sequences again and again, with other labels changed each time; d = 36. `n`: a multiple of 500."""
    rng = np.random.default_rng(seed)
    few = 500
    times = n // few
    base = chain(3, lengths=tuple(rng.integers(1, 4, size=few).tolist()), width=6, classes=3)
    truth = np.tile(base.truth, times).astype(np.int64)
    changed = rng.random(truth.size) < 0.3
    truth[changed] = rng.integers(3, size=int(changed.sum()))
    values = 1.0 + rng.normal(scale=0.1, size=base.tokens.ids.size * times)
    lengths = np.tile(np.diff(base.label_ptr), times)
    arrays = {
        "labels": truth,
        "labels_ptr": np.concatenate([[0], np.cumsum(lengths)]),
        "ids": np.tile(base.tokens.ids, times),
        "counts": np.tile(np.diff(base.tokens.row_ptr), times),
        "values": values,
        "gram": np.tile(base.gram, times),  # approximate: only line searches use it
        "gram_ptr": np.concatenate([[0], np.cumsum(lengths**2)]),
    }
    return build("chain", arrays, {"classes": 3, "attributes": 9})


def psi_by_fsum(problem: Problem, labels: np.ndarray) -> np.ndarray:
    """(1/n) sum_i psi_i of multiclass vertices, rounded once."""
    x, truth = problem.rows.x, problem.truth
    parts = [x * ((truth == k).astype(float) - (labels == k))[:, None] for k in range(problem.cost.shape[0])]
    return np.array([math.fsum(part[:, j]) for part in parts for j in range(x.shape[1])]) / problem.n


def test_derive__rounds_as_little_at_many_blocks_as_at_few() -> None:
    """A plain sum is off by more than a hundred units of psi's last place here."""
    problem = multiclass(n=N)
    labels = np.random.default_rng(1).integers(3, size=N).astype(problem.truth.dtype)
    state = new_state(problem, vertices_pool(problem, labels, (labels != problem.truth).astype(float)))
    derive(problem, state, 1.0 / (LAM * N))
    exact = psi_by_fsum(problem, labels)
    assert np.max(np.abs(LAM * state.u - exact)) <= 8 * UNIT * np.max(np.abs(exact))


def test_rebuild__rounds_as_little_at_many_blocks_as_at_few() -> None:
    problem = multiclass(n=N)
    labels = (problem.truth == 0).astype(problem.truth.dtype)  # the first class with the largest loss
    exact = psi_by_fsum(problem, labels)
    assert np.max(np.abs(rebuild_zero(problem).psi - exact)) <= 8 * UNIT * np.max(np.abs(exact))


PROBLEMS = {"multiclass": multiclass, "chain": large_chain}


@pytest.mark.parametrize(("rule", "name"), [("paper", "multiclass"), ("two_sided", "chain")])
def test_path__of_noisy_data_ends_by_itself_and_is_certified(tmp_path: Path, name: str, rule: str) -> None:
    problem = PROBLEMS[name](n=N)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=100.0)
    status = solve(Task(problem, options, PathOptions(rule=rule, eps=0.2)), tmp_path, key="k")
    assert status is Status.LAMBDA_NEGLIGIBLE
    result = verify(problem, tmp_path, samples=3)
    assert result["certified"]
    assert result["broken"] == []
    assert result["max_rebuild_error"] < 1e-9


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_verify__has_no_false_alarm_at_a_very_small_lambda(tmp_path: Path, name: str) -> None:
    problem = PROBLEMS[name](n=N)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=2.0)
    path = PathOptions(rule="single", lam=LAM, tolerance=0.1)
    assert solve(Task(problem, options, path), tmp_path, key="k") is Status.PASS_LIMIT
    result = verify(problem, tmp_path)
    assert result["broken"] == []
    assert result["max_rebuild_error"] < 1e-10


M = 20_000


def test_run__of_many_noisy_blocks_ends_by_itself_and_is_certified(tmp_path: Path) -> None:
    """Three classes that overlap, in columns of noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=M + 2000)
    x = rng.normal(size=(labels.size, 4))
    x[:, :2] += 0.3 * (labels[:, None] == [0, 1])
    np.savez(
        tmp_path / "own.npz",
        x_train=x[:M],
        y_train=labels[:M],
        x_test=x[M:],
        y_test=labels[M:],
    )
    words = ["dataset=multiclass_arrays", f"dataset.file={tmp_path}/own.npz", "path.eps=0.2", "tracking=none"]
    assert run(composed(*words, f"run.root={tmp_path}/runs")) == 0
    (file,) = (tmp_path / "runs").glob("*/result.json")
    result = json.loads(file.read_text(encoding="utf-8"))
    assert result["problem"]["n"] == M
    assert result["status"] == "LAMBDA_NEGLIGIBLE"
    assert result["verify"]["certified"]
    assert result["verify"]["max_rebuild_error"] < 1e-7
    assert result["evaluate"]["test_loss"] < 0.66  # the classes alone give 2/3
