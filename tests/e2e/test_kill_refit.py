"""A refit, killed as SIGKILL kills, goes on to the bits of an undisturbed one; nothing before it runs again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from in_process import Here
from real_runs import kill
from waiting import wait_for

from gapwise.storage.results import read_path

COMMAND = [
    *("dataset=multiclass_arrays", "dataset.validation=0.2", "run.refit=true", "tracking=none", "compute=serial"),
    *("path.eps=0.3", "checkpoint.every_seconds=0", "solver.rebase_steps=20"),
]


def test_kill__during_the_refit_changes_no_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = {"y_train": rng.integers(4, size=150), "y_test": rng.integers(4, size=20)}
    x = {f"x{name[1:]}": rng.normal(size=(k.size, 12)) + np.eye(4, 12)[k] for name, k in y.items()}
    np.savez(tmp_path / "own.npz", **x, **y)
    command = [*COMMAND, f"dataset.file={tmp_path / 'own.npz'}"]
    whole, killed = Here(tmp_path / "whole", command), Here(tmp_path / "killed", command)
    whole.finish()
    killed.finish("run.refit=false")
    solved = (killed.run / "path.zarr" / "zarr.json").stat().st_mtime_ns
    process = killed.start()
    wait_for(lambda: (killed.run / "refit" / "state" / "HEAD.json").is_file(), process)
    assert kill(process)
    assert not (killed.run / "refit" / "path.zarr").exists(), "it was done before it could be killed"
    killed.finish()
    assert (killed.run / "path.zarr" / "zarr.json").stat().st_mtime_ns == solved
    ours, theirs = (read_path(sandbox.run / "refit" / "path.zarr")[0] for sandbox in (killed, whole))
    assert {name: array.tobytes() for name, array in ours.items() if name != "seconds"} == {
        name: array.tobytes() for name, array in theirs.items() if name != "seconds"
    }
