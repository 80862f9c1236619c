"""Files that are not what was written: bits flipped, cut short, overwritten or gone. Checksums are as they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from harms import HARMS, digit, flip, largest
from in_process import Here
from real_runs import assert_same_path, assert_same_results

from gapwise.pipeline.rundir import locked

Copy = Callable[[Here], Here]


def goes_on(sandbox: Here, calm: Here, says: str) -> None:
    """The same command warns and ends with the same bits."""
    done = sandbox.finish("run.until=verify")
    assert says in done.err, done.err
    assert_same_path(sandbox, calm)


def newest(sandbox: Here) -> Path:
    return max((sandbox.run / "state").glob("g*.zarr"))


STATE = {
    "chunk": (lambda at: flip(largest(newest(at))), "does not match its checksum; going on from generation"),
    "head": (lambda at: (at.run / "state" / "HEAD.json").unlink(), "falling back on the newest generation that is"),
    "generation": (lambda at: shutil.rmtree(newest(at)), "is missing; going on from generation"),
}


@pytest.mark.parametrize("what", STATE)
def test_state__damaged_costs_one_commit_at_most(halfway: Here, calm: Here, copy: Copy, what: str) -> None:
    harm, says = STATE[what]
    sandbox = copy(halfway)
    harm(sandbox)
    goes_on(sandbox, calm, says)


def test_segment__damaged_is_an_error_that_touches_nothing(halfway: Here, calm: Here, copy: Copy) -> None:
    sandbox = copy(halfway)
    flip(largest(min((sandbox.run / "state").glob("s*.zarr"))))
    before = {path: path.stat().st_mtime_ns for path in (sandbox.run / "state").rglob("*")}
    done = sandbox.issue()
    assert done.code == 1, done.err
    assert "no committed generation is intact" in done.err
    assert "delete it to solve again from the beginning" in done.err
    assert {path: path.stat().st_mtime_ns for path in (sandbox.run / "state").rglob("*")} == before
    shutil.rmtree(sandbox.run / "state")
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


def test_features__damaged_are_made_again(halfway: Here, calm: Here, copy: Copy) -> None:
    sandbox = copy(halfway)
    HARMS["cut"](largest(next(sandbox.root.glob("features/sequences_csv-????????"))))
    goes_on(sandbox, calm, "the features are made again")


def test_features__in_a_folder_that_cannot_be_written_are_used_and_if_damaged_refused(
    halfway: Here, calm: Here, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = copy(halfway)
    features = sandbox.root / "features"
    for lock in features.glob("*.lock"):
        lock.unlink()
    monkeypatch.setattr(os, "access", lambda path, mode, **_: Path(path) != features)
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
    assert not list(features.glob("*.lock")), "nothing was written there"
    flip(largest(next(features.glob("sequences_csv-????????"))))
    done = sandbox.issue("run.until=featurize")
    assert done.code == 1
    assert f"{features} cannot be written, so they cannot be made again here" in done.err


COMPLETE = {
    "path": ("path.zarr/weights", lambda file: flip(largest(file)), "stage solve wrote it"),
    "losses": ("path.zarr/test_loss", lambda file: flip(largest(file)), "stage evaluate wrote it"),
    "metrics": ("metrics.json", digit, "stage evaluate wrote it"),
    "tables gone": ("predictions", shutil.rmtree, "stage evaluate wrote it"),
    "verification": ("verify.json", digit, "stage verify wrote it"),
    "answer": ("result.json", digit, "does not match its own checksum"),
}


@pytest.mark.parametrize("what", COMPLETE)
def test_complete_run__of_which_something_is_damaged_is_not_complete(calm: Here, copy: Copy, what: str) -> None:
    sandbox = copy(calm)
    name, harm, says = COMPLETE[what]
    harm(sandbox.run / name)
    assert says in sandbox.finish().err
    assert_same_results(sandbox, calm)


@pytest.mark.parametrize("harm", ["garbage", "gone"])
def test_manifest__damaged_is_made_again(solved: Here, calm: Here, copy: Copy, harm: str) -> None:
    sandbox = copy(solved)
    run = sandbox.run
    HARMS[harm](run / "manifest.json")
    done = sandbox.finish("run.until=verify")
    assert harm == "gone" or "its stages run again from what they committed" in done.err
    assert_same_path(sandbox, calm)
    assert (run / "damaged-manifest.json").exists() == (harm != "gone")


# -- symbolic links that somebody has put in the places of locks, temporary files and results --------------------------
@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file in a folder of its own, both of which must be as they were when a test ends."""
    file = tmp_path / "elsewhere" / "precious.txt"
    file.parent.mkdir()
    file.write_text("precious")
    return file


def assert_untouched(victim: Path) -> None:
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]
    assert victim.read_text() == "precious"


def test_lock__that_is_a_link_is_refused(halfway: Here, copy: Copy, victim: Path) -> None:
    sandbox = copy(halfway)
    for lock in (sandbox.run / "lock", next(sandbox.root.glob("features/*.lock"))):
        lock.unlink()
        lock.symlink_to(victim)
        done = sandbox.issue()
        assert done.code == 1
        assert f"error: {lock}: expected a lock file, found a symbolic link; remove the link" in done.err
        lock.unlink()
        assert_untouched(victim)


SCRATCH = (
    *(".tmp-manifest.json", ".tmp-path.zarr", ".old-path.zarr", ".tmp-trace.zarr", ".tmp-verify.json"),
    *(".tmp-predictions.npz", ".tmp-report.html", ".tmp-result.json", "state/.tmp-HEAD.json", "figures/.tmp-path.png"),
)
"""Where a command writes before it renames; besides the next generation and segment of state/."""


@pytest.mark.parametrize("to", ["file", "folder"])
def test_scratch__that_is_a_link_is_replaced(halfway: Here, calm: Here, copy: Copy, victim: Path, to: str) -> None:
    sandbox = copy(halfway)
    (sandbox.run / "figures").mkdir()
    following = [f"state/.tmp-{kind}{sandbox.generation + 1:06d}" for kind in ("g", "s")]
    for name in (*SCRATCH, *(f"{name}.zarr" for name in following), f"{following[0]}.json"):
        (sandbox.run / name).symlink_to(victim if to == "file" else victim.parent)
    sandbox.finish()
    assert_same_results(sandbox, calm)
    assert [path for path in sandbox.root.rglob("*") if path.is_symlink()] == []
    assert_untouched(victim)


def test_outputs__that_all_are_links_are_replaced(calm: Here, copy: Copy, victim: Path) -> None:
    sandbox = copy(calm)
    files = ("result.json", "verify.json", "metrics.json", "predictions.npz", "figures/path.png", "state/HEAD.json")
    for name in (*files, "path.zarr", "trace.zarr"):
        path = sandbox.run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(victim.parent if name.endswith("zarr") else victim)
    sandbox.finish()
    assert_same_results(sandbox, calm)
    assert [path for path in sandbox.run.rglob("*") if path.is_symlink()] == []
    assert_untouched(victim)


# -- another process, too little time ----------------------------------------------------------------------------------
def test_run__that_another_process_works_on_is_refused(halfway: Here, copy: Copy) -> None:
    sandbox = copy(halfway)
    with locked(sandbox.run / "lock"):
        done = sandbox.issue()
    assert done.code == 1
    assert f"is in use by process {os.getpid()} on host" in done.err


def test_time__over_before_anything_is_solved_is_an_error(fresh, calm: Here, tmp_path: Path) -> None:
    sandbox = fresh(tmp_path / "runs")
    done = sandbox.issue("solver.max_seconds=1e-9")
    assert done.code == 1
    assert "was over before the first lambda was solved" in done.err
    assert sandbox.generation == 1
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
