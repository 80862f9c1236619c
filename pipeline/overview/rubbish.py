"""What may go from a folder of runs, and why: found without taking a lock, removed only under the lock of what owns it.

Found are scratch files of processes that have ended, features that no run needs, and runs that are named. Everything is
judged once more when its lock is held, so what a process has begun to use meanwhile stays. Symbolic links are never
followed: what is reached through one stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapwise.pipeline.errors import one_line
from gapwise.pipeline.overview.find import bytes_below, folders
from gapwise.pipeline.overview.run_state import RunState, run_state
from gapwise.storage.files import holder, locked, remove

FRESH_SECONDS = 3600.0
"""Features are kept for so long after they were made, for runs that have not begun; so is scratch without a lock."""
SCRATCH = ("", "state", "figures", "snapshots")
"""Folders of a run in which files are written aside."""


@dataclass(frozen=True)
class Rubbish:
    """One file or tree that may go."""

    path: Path
    why: str
    kind: str
    """run | scratch | features"""
    lock: Path | None
    """The lock of what it belongs to; None for scratch of nobody in particular, which only its age protects."""

    @property
    def bytes(self) -> int:
        return bytes_below(self.path) or 0


def rubbish(root: Path, named: Sequence[Path] = ()) -> Iterator[Rubbish]:
    """All that may go below `root`, the runs in `named` first."""
    runs = [run_state(path) for path in folders(root)]
    doomed = set(named)
    for run in runs:
        path = Path(str(run.run))
        if path.is_symlink() or run.state == "foreign" or _held(path / "lock"):
            continue
        if path in doomed:
            yield Rubbish(path, f"named; it is {run.state}", "run", path / "lock")
        else:
            yield from _of_run(path)
    yield from _features(root, [run for run in runs if Path(str(run.run)) not in doomed])


def _of_run(path: Path) -> Iterator[Rubbish]:
    """Scratch of one run."""
    for folder in (path / name for name in SCRATCH):
        if folder.is_dir() and not folder.is_symlink():
            for left in _scratch(folder):
                yield Rubbish(left, "scratch of a process that has ended", "scratch", path / "lock")


def _scratch(folder: Path) -> Iterator[Path]:
    """What was written aside there.

    A tree that stepped aside for one that never came is no rubbish: a resume puts it back.
    """
    for path in sorted(folder.iterdir()):
        original = folder / path.name.removeprefix(".old-")
        moved = path.name.startswith(".old-") and (original.exists() or path.is_symlink())
        if moved or path.name.startswith(".tmp-"):
            yield path


def _features(root: Path, runs: Sequence[RunState]) -> Iterator[Rubbish]:
    """Feature stores that no run needs, and scratch beside them."""
    folder = root / "features"
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in _scratch(folder):
        lock = folder / f"{path.name.removeprefix('.tmp-').removeprefix('.old-')}.lock"
        mine = lock if lock.is_file() else None
        if not (_is_fresh(path) if mine is None else _held(lock)):
            yield Rubbish(path, "scratch of a process that has ended", "scratch", mine)
    sweeping = any(_held(lock) for lock in (root / "sweeps").glob("*/lock"))
    for path in sorted(folder.iterdir()):
        lock = folder / f"{path.name}.lock"
        whole = not path.is_symlink() and (path / "meta.json").is_file()
        if whole and not (needs(runs, path.name) or sweeping or _is_fresh(path / "meta.json") or _held(lock)):
            yield Rubbish(path, "no run needs these features", "features", lock)


def needs(runs: Sequence[RunState], features: str) -> bool:
    """Whether one of the runs has, or may be about to have, the features of this name."""
    data = features.rpartition("-")[0]
    for run in runs:
        key = run.stages.get("featurize", {}).get("key")
        if features == f"{data}-{str(key)[:8]}" if key else run.run.name.startswith(f"{data}-"):
            return True
    return False


def remove_all(root: Path, items: Sequence[Rubbish], named: Sequence[Path] = ()) -> Iterator[tuple[Rubbish, str]]:
    """Remove each, under its lock and only if it still may go; yields each with why it stays, empty if it is gone."""
    for item in items:
        try:
            if item.lock is None:
                remove(item.path)
            else:
                with locked(item.lock):
                    if not _still(root, item, named):
                        yield item, "it is needed or gone by now"
                        continue
                    _remove(item)
            yield item, ""
        except (OSError, RuntimeError) as error:
            yield item, one_line(error)


def _still(root: Path, item: Rubbish, named: Sequence[Path]) -> bool:
    """Whether it still may go, now that this process holds its lock."""
    if item.path.is_symlink() and item.kind != "scratch":
        return False
    if item.kind == "features":
        return (item.path / "meta.json").is_file() and not needs(
            [run_state(path) for path in folders(root)], item.path.name
        )
    return item.kind != "run" or item.path in named


def _remove(item: Rubbish) -> None:
    """Remove it; of a folder that holds its own lock the lock last, result.json first."""
    if item.lock is None or item.lock.parent != item.path:
        remove(item.path)
        if item.kind == "features" and item.lock is not None:
            item.lock.unlink()
        return
    for child in sorted(item.path.iterdir(), key=lambda child: child.name != "result.json"):
        if child != item.lock:
            remove(child)
    item.lock.unlink()
    item.path.rmdir()


def _held(lock: Path) -> bool:
    """Whether a process holds the lock, or something else is in its place."""
    try:
        return holder(lock) is not None
    except OSError:
        return True


def _is_fresh(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime < FRESH_SECONDS
    except OSError:
        return True
