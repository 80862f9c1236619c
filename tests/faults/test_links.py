"""Symbolic links that somebody has put in the places of locks, temporary files and results: no target is ever written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from in_process import Here, here
from real_runs import Bench, Calm, Sandbox, assert_same_path, assert_same_results, long

from gapwise.storage.files import remove

pytestmark = pytest.mark.slow

Copy = Callable[[Sandbox], Here]


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file in a folder of its own, both of which must be as they were when the test ends."""
    file = tmp_path / "elsewhere" / "precious.txt"
    file.parent.mkdir()
    file.write_text("precious")
    yield file
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.read_text() == "precious"


@pytest.mark.fault("linked lock")
@pytest.mark.parametrize("which", ["lock", "features"])
def test_lock__that_is_a_link_is_refused(halfway: Sandbox, calm: Calm, copy: Copy, victim: Path, which: str) -> None:
    sandbox = copy(halfway)
    lock = sandbox.run / "lock" if which == "lock" else next(sandbox.root.glob("features/*.lock"))
    lock.unlink()
    lock.symlink_to(victim)
    done = sandbox.issue()
    assert done.code == 1
    assert f"error: {lock}: expected a lock file, found a symbolic link; remove the link" in done.err
    lock.unlink()
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)


def scratch_names(sandbox: Sandbox) -> list[Path]:
    """Where the command writes before it renames."""
    run, number = sandbox.run, sandbox.generation
    names = (
        "manifest.json",
        "path.zarr",
        "trace.zarr",
        "verify.json",
        "metrics.json",
        "predictions.npz",
        "report.html",
        "result.json",
    )
    state = [
        f"{kind}{number + k:06d}.{ending}"
        for k in (1, 2)
        for kind, ending in (("g", "zarr"), ("g", "json"), ("s", "zarr"))
    ]
    links = [run / f".tmp-{name}" for name in names] + [run / ".old-path.zarr", run / ".old-trace.zarr"]
    links += [run / "state" / f".tmp-{name}" for name in (*state, "HEAD.json")]
    return [*links, run / "figures" / ".tmp-path.png"]


@pytest.mark.fault("linked scratch")
@pytest.mark.parametrize("to", ["file", "folder"])
def test_scratch__that_is_a_link_is_replaced(halfway: Sandbox, calm: Calm, copy: Copy, victim: Path, to: str) -> None:
    sandbox = copy(halfway)
    (sandbox.run / "figures").mkdir()
    for link in scratch_names(sandbox):
        link.symlink_to(victim if to == "file" else victim.parent)
    sandbox.finish()
    assert_same_results(sandbox, calm)
    assert [path for path in sandbox.root.rglob("*") if path.is_symlink()] == []


@pytest.mark.fault("linked scratch")
def test_scratch__of_features_that_is_a_link_is_replaced(bench: Bench, calm: Calm, victim: Path) -> None:
    sandbox = here(bench.sandbox("linked features"))
    name = next(calm.root.glob("features/*/meta.json")).parent.name
    (sandbox.root / "features").mkdir(parents=True)
    (sandbox.root / "features" / f".tmp-{name}").symlink_to(victim.parent)
    sandbox.finish("run.stage=featurize")
    made = next(sandbox.root.glob("features/*/meta.json"))
    assert made.read_bytes() == (calm.root / "features" / name / "meta.json").read_bytes()


FILES = [
    "result.json",
    "verify.json",
    "metrics.json",
    "predictions.npz",
    "report.html",
    "manifest.json",
    "figures/path.png",
    "state/HEAD.json",
]
TREES = ["path.zarr", "trace.zarr", "path.zarr/weights", "path.zarr/test_loss"]


@pytest.mark.fault("linked output")
def test_outputs__that_all_are_links_are_replaced(calm: Calm, copy: Copy, victim: Path) -> None:
    sandbox = copy(calm)
    for name in [*FILES, "path.zarr", "trace.zarr"]:
        if name == "manifest.json":
            continue  # alone; without it nothing says what path.zarr should be
        replace_by_link(sandbox.run / name, victim.parent if name in TREES else victim)
    sandbox.finish()
    assert_same_results(sandbox, calm)
    assert [path for path in sandbox.run.rglob("*") if path.is_symlink()] == []


@pytest.mark.fault("linked output")
@pytest.mark.parametrize("name", ["path.zarr/test_loss", *map(long, [*FILES, *TREES[:-1]])])
def test_output__that_is_a_link_is_replaced(calm: Calm, copy: Copy, victim: Path, name: str) -> None:
    sandbox = copy(calm)
    replace_by_link(sandbox.run / name, victim.parent if name in TREES else victim)
    sandbox.finish()
    assert_same_results(sandbox, calm)


@pytest.mark.fault("linked output")
@pytest.mark.parametrize("name", ["HEAD.json", "newest"])
def test_state__that_is_a_link_costs_one_commit_at_most(
    halfway: Sandbox, calm: Calm, copy: Copy, victim: Path, name: str
) -> None:
    sandbox = copy(halfway)
    state = sandbox.run / "state"
    if name == "newest":
        replace_by_link(max(state.glob("g*.zarr")), victim.parent)
    else:
        replace_by_link(state / name, victim)
    sandbox.finish("run.until=verify")
    assert_same_path(sandbox, calm)
    assert [path for path in state.rglob("*") if path.is_symlink()] == []


def replace_by_link(path: Path, target: Path) -> None:
    if path.exists():
        remove(path)
    path.symlink_to(target)
