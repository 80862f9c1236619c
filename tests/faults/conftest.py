"""Small runs to disturb: one that ran to the end, one stopped half-way, one stopped before verify.

All solve one small chain problem.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from in_process import Here

from gapwise.pipeline.interrupt import Stop


def write_sequences(file: Path, count: int, rng: np.random.Generator) -> None:
    """Attribute lines of `count` short sequences over three labels."""
    lines = []
    for _ in range(count):
        label = 0
        for _ in range(rng.integers(2, 7)):
            label = (label + int(rng.integers(2))) % 3
            word = int(rng.integers(8)) + (4 * label if rng.random() < 0.7 else 0)
            lines.append(f"{'ABC'[label]}\tw={word}\ts={rng.integers(3)}")
        lines.append("")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Here]:
    """fresh(root): a sandbox without a run."""
    data, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    write_sequences(data / "train.txt", 40, rng)
    write_sequences(data / "test.txt", 10, rng)
    command = [
        *("dataset=sequences_csv", f"dataset.file={data}/train.txt", f"dataset.test_file={data}/test.txt"),
        *("path.eps=0.1", "path.lambda_min=0.3", "solver.rebase_steps=150"),
        *("tracking=none", "compute=serial", "checkpoint.every_seconds=0"),
    ]
    return lambda root: Here(root, command)


@pytest.fixture(scope="session")
def calm(fresh: Callable[[Path], Here], tmp_path_factory: pytest.TempPathFactory) -> Here:
    sandbox = fresh(tmp_path_factory.mktemp("calm") / "runs")
    sandbox.finish()
    return sandbox


@pytest.fixture(scope="session")
def halfway(fresh: Callable[[Path], Here], calm: Here, tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Stopped with some breakpoints done, two generations and several segments committed."""
    sandbox = fresh(tmp_path_factory.mktemp("halfway") / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stop, "__call__", lambda self: sandbox.generation >= calm.generation // 2)
        assert sandbox.issue().code == 130
    assert 2 < sandbox.generation < calm.generation
    return sandbox


@pytest.fixture(scope="session")
def solved(halfway: Here, tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Solved, not verified."""
    sandbox = Here(tmp_path_factory.mktemp("solved") / "runs", halfway.command)
    shutil.copytree(halfway.root, sandbox.root)
    sandbox.finish("run.until=solve")
    return sandbox


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Here], Here]:
    """copy(sandbox): its runs, copied to where the test may do as it likes."""
    number = itertools.count()

    def make(like: Here) -> Here:
        root = tmp_path / f"runs-{next(number)}"
        shutil.copytree(like.root, root)
        return Here(root, like.command)

    return make
