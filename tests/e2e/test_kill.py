"""Segmentation on threads, killed at any moment and started again: the same bits as an undisturbed run.

Three random kills of one run: while it makes features, while it solves, and afterwards. GAPWISE_KILLS=10 kills the solve
more often.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from real_runs import Sandbox, assert_same_results, kill
from waiting import wait_for

pytestmark = pytest.mark.slow

KILLS = max(3, int(os.environ.get("GAPWISE_KILLS", "3")))
COMMAND = [
    *("+experiment=regpath_horseseg", "tracking=none", "compute.workers=2", "checkpoint.every_seconds=0"),
    *(
        "dataset.n_train=8",
        "dataset.n_test=3",
        "dataset.n_validation=2",
        "dataset.superpixels=40",
        "dataset.colour_words=16",
    ),
    *("dataset.sift_words=16", "dataset.colour_samples=50", "dataset.sift_samples=50"),
    *("solver.rebase_steps=100", "path.lambda_min=1e-3"),
]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory, where there is a place: a commit at every rebase point is many files."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Sandbox:
    """The uninterrupted run."""
    sandbox = Sandbox(folder / "whole", COMMAND)
    assert sandbox.finish().out.splitlines()[-1] == f"run: {sandbox.run}"
    assert sandbox.generation >= KILLS
    return sandbox


@pytest.fixture(scope="module")
def first(folder: Path, whole: Sandbox) -> float:
    """Seconds to the first commit once everything is compiled."""
    sandbox = Sandbox(folder / "first", COMMAND)
    began = time.monotonic()
    process = sandbox.start()
    wait_for(lambda: sandbox.generation > 0, process)
    took = time.monotonic() - began
    assert kill(process)
    return took


@pytest.mark.long  # tests/faults does the same to sequences
def test_kill__at_random_moments_changes_no_bit(folder: Path, whole: Sandbox, first: float) -> None:
    sandbox = Sandbox(folder / "killed", COMMAND)
    rng = np.random.default_rng(0)
    generations = np.sort(rng.choice(np.arange(1, whole.generation), KILLS - 2, replace=False))
    moments: list[tuple[Callable[[], bool], float]] = [
        (lambda: any(sandbox.root.glob("features/.tmp-*")), 0.5 * first),
        *((lambda generation=generation: sandbox.generation >= generation, 0.2) for generation in generations.tolist()),
        (lambda: any(sandbox.root.glob("horses_sample-*/path.zarr")), 1.0),
    ]
    reached = []
    for come, longest in moments:
        process = sandbox.start()
        wait_for(come, process)
        time.sleep(longest * rng.random())
        assert process.poll() is None, "it was done before it could be killed"
        assert kill(process)
        reached.append(sandbox.generation)
    assert reached == sorted(reached)
    sandbox.finish()
    assert_same_results(sandbox, whole)


@pytest.mark.long  # tests/pipeline/test_run.py does the same with fake stages
def test_complete__is_said_without_loading_a_stage_and_touches_nothing(whole: Sandbox) -> None:
    before = {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")}
    again = Sandbox(whole.root, COMMAND, {"PYTHONPROFILEIMPORTTIME": "1"}).finish()
    assert again.out.splitlines()[-1] == f"run: {whole.run}"
    assert "every certificate holds" in again.out
    assert {file: file.stat().st_mtime_ns for file in whole.root.rglob("*")} == before
    loaded = {line.rsplit("|", 1)[-1].strip() for line in again.err.splitlines() if line.startswith("import time:")}
    assert "gapwise.pipeline.run" in loaded
    assert not loaded & {"numba", "gapwise.stages.solve", "gapwise.stages.problems.segmentation"}
