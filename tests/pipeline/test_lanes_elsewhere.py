"""λ's of a path solved side by side in other processes: the bits of one process, whatever is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from equality import assert_same_path
from in_process import Here
from tiny import python_oracle
from waiting import wait_for

from gapwise.pipeline.compute import remote


def test_jobs__have_their_states_return_in_order_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_problem", lambda task, blocks: python_oracle())
    sender = remote.Sender(
        lambda fn, items, places=None: [fn(item) for item in items], tmp_path / "features", tmp_path / "states"
    )
    states = [np.arange(3.0), np.arange(3.0, 6.0)]
    jobs = [lambda problem, state, given_up, k=k: (k, state.tolist(), given_up()) for k in range(3)]
    answers = sender.jobs(zip(jobs, [states[0], states[1], states[0]], strict=True), "train", lambda: False)
    assert answers == [(0, [0.0, 1.0, 2.0], False), (1, [3.0, 4.0, 5.0], False), (2, [0.0, 1.0, 2.0], False)]

    def failing(problem, state, given_up):
        raise ValueError("no such label")

    with pytest.raises(ValueError, match="no such label"):
        sender.jobs([(failing, np.zeros(3))], "train", lambda: False)
    assert not sender.folder.exists()


@pytest.mark.slow
def test_processes__of_which_one_is_killed_find_the_same_bits(tmp_path: Path) -> None:
    words = [
        "dataset=python_oracle", "dataset.oracle=python_task:Pairs", "+dataset.arguments.n=30", "tracking=none",
        "+dataset.arguments.delay=0.004", "path.parallel=3", "path.eps=0.05", "path.lambda_min=0.2", "solver=bcpfw_gap",
    ]  # fmt: skip
    far = Here(tmp_path / "far", [*words, "compute=processes", "compute.workers=2"])

    def kill_one() -> None:
        wait_for(lambda: len([*far.root.glob("*/.tmp-weights/w-*")]) >= 2)  # several lanes are being solved
        children = psutil.Process().children(recursive=True)
        next(child for child in children if any("spawn_main" in word for word in child.cmdline())).kill()

    with ThreadPoolExecutor(1) as other:
        killed = other.submit(kill_one)
        far.finish()
        killed.result()
    near = Here(tmp_path / "near", [*words, "compute=serial"])
    near.finish()
    assert_same_path(far.run, near.run)
