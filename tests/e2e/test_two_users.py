"""Two users on one folder of runs: a group with umask 002 shares them; otherwise the second is told whose they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import as_users
import hydra
import pytest


def closed() -> list[Path]:
    """Folders above what a run reads (its own modules, Hydra's configuration) that other users may not enter."""
    read = [Path(as_users.__file__), Path(hydra.__file__).resolve()]
    return sorted({folder for file in read for folder in file.parents if folder.stat().st_mode & 0o005 != 0o005})


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two other users")
@pytest.mark.skipif(bool(closed()), reason=f"other users may not enter {', '.join(map(str, closed()))}")
def test_users__share_runs_by_a_group_and_are_told_whose_files_they_may_not_write() -> None:
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    with tempfile.TemporaryDirectory() as folder:  # others may look into it, not into pytest's
        done = subprocess.run(
            [sys.executable, as_users.__file__, folder], env=env, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    for what, (code, err) in said["found"].items():
        assert code == (1 if what == "refused" else 0), (what, err)
        assert "Traceback" not in err
    _, told = said["found"]["refused"]
    assert f"belongs to the user with the number {as_users.FIRST}. To share a folder of runs, " in told
    assert "umask 002" in told
    assert Path(told.removeprefix("error: ").partition(":")[0]).name == "lock"
    assert said["features"] == 1, "the second took those of the first"
    assert {as_users.FIRST, as_users.SECOND} <= set(said["owners"])
    assert said["unchanged"]
