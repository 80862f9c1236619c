"""What may go from a folder of runs, and why: found without taking a lock, removed only under the lock of what owns it.

Found are scratch files of processes that have ended, generations of state that a complete run has left behind, features
that no run needs, leftovers of sweeps, and runs that are named. Everything is judged once more when its lock is held, so
what a process has begun to use meanwhile stays. Symbolic links are never followed: what is reached through one stays.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapwise.pipeline.overview.disk import bytes_below
from gapwise.pipeline.overview.find import folders
from gapwise.pipeline.overview.standing import Standing, standing
from gapwise.storage.files import holder, listed, locked, remove
from gapwise.storage.glance import record

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
    """run | state | scratch | features | sweep"""
    lock: Path | None
    """The lock of what it belongs to; None for scratch of nobody in particular, which only its age protects."""

    @property
    def bytes(self) -> int:
        return bytes_below(self.path) or 0


def rubbish(root: Path, named: Sequence[Path] = ()) -> Iterator[Rubbish]:
    """All that may go below `root`, the runs in `named` first."""
    runs = [standing(path) for path in folders(root)]
    doomed = set(named)
    for at in runs:
        path = Path(str(at.run))
        if path.is_symlink() or at.state == "foreign" or _held(path / "lock"):
            continue
        if path in doomed:
            yield Rubbish(path, f"named; it is {at.state}", "run", path / "lock")
        else:
            yield from _of_run(at, path)
    yield from _features(root, [at for at in runs if Path(str(at.run)) not in doomed])
    yield from _sweeps(root)


def _of_run(at: Standing, path: Path) -> Iterator[Rubbish]:
    """Scratch of one run, and what its state no longer needs."""
    for name in SCRATCH:
        folder = path / name
        if folder.is_dir() and not folder.is_symlink():
            yield from (
                Rubbish(left, "scratch of a process that has ended", "scratch", path / "lock")
                for left in _scratch(folder)
            )
    state = path / "state"
    if at.state != "complete" or at.solved == "TIME_LIMIT" or not state.is_dir() or state.is_symlink():
        return
    try:
        head = record(state / "HEAD.json") or {}
        kept = {f"g{int(head['generation']):06d}", *(str(segment["name"]) for segment in head["segments"])}
    except (OSError, ValueError, KeyError, TypeError):
        return  # its state is what a repair would start from
    for old in listed(state, "[gs]??????.*"):
        if old.name not in kept and old.name.split(".")[0] not in kept:
            yield Rubbish(Path(str(old)), "an older generation of a complete run", "state", path / "lock")


def _scratch(folder: Path) -> Iterator[Path]:
    """What was written aside there.

    A tree that stepped aside for one that never came is no rubbish: a resume puts it back.
    """
    for path in sorted(folder.iterdir()):
        original = folder / path.name.removeprefix(".old-")
        moved = path.name.startswith(".old-") and (original.exists() or path.is_symlink())
        if moved or path.name.startswith(".tmp-"):
            yield path


def _features(root: Path, runs: Sequence[Standing]) -> Iterator[Rubbish]:
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


def needs(runs: Sequence[Standing], features: str) -> bool:
    """Whether one of the runs has, or may be about to have, the features of this name."""
    data = features.rpartition("-")[0]
    for at in runs:
        key = at.stages.get("featurize", {}).get("key")
        if features == f"{data}-{str(key)[:8]}" if key else at.run.name.startswith(f"{data}-"):
            return True
    return False


def _sweeps(root: Path) -> Iterator[Rubbish]:
    """Scratch of sweeps, and the folders of sweeps that never came to their table."""
    folder = root / "sweeps"
    if not folder.is_dir() or folder.is_symlink():
        return
    for path in sorted(folder.iterdir()):
        lock = path / "lock"
        if path.name.startswith(".") or path.is_symlink() or not lock.is_file() or _held(lock):
            continue
        if not (path / "summary.json").exists():
            yield Rubbish(path, "a sweep that ended before its table; its runs stay", "sweep", lock)
        elif (path / "workers").is_dir() and not (path / "workers").is_symlink():
            yield Rubbish(path / "workers", "scratch of a sweep that has ended", "scratch", lock)


def remove_all(root: Path, found: Sequence[Rubbish], named: Sequence[Path] = ()) -> Iterator[tuple[Rubbish, str]]:
    """Remove each, under its lock and only if it still may go; yields each with why it stays, empty if it is gone."""
    for one in found:
        try:
            if one.lock is None:
                remove(one.path)
            else:
                with locked(one.lock):
                    if not _still(root, one, named):
                        yield one, "it is needed or gone by now"
                        continue
                    _remove(one)
            yield one, ""
        except (OSError, RuntimeError) as error:
            yield one, " ".join(str(error).split())


def _still(root: Path, one: Rubbish, named: Sequence[Path]) -> bool:
    """Whether it still may go, now that this process holds its lock."""
    if one.path.is_symlink() and one.kind != "scratch":
        return False
    if one.kind == "features":
        return (one.path / "meta.json").is_file() and not needs(
            [standing(path) for path in folders(root)], one.path.name
        )
    if one.kind == "state":
        at = standing(one.path.parents[1])
        return at.result is not None and one in set(_of_run(_at_rest(at), one.path.parents[1]))
    return one.kind != "run" or one.path in named


def _at_rest(at: Standing) -> Standing:
    """How a run stands apart from this process's lock on it."""
    return dataclasses.replace(at, state="complete", holder=None)


def _remove(one: Rubbish) -> None:
    """Remove it; of a folder that holds its own lock the lock last, result.json first."""
    if one.lock is None or one.lock.parent != one.path:
        remove(one.path)
        if one.kind == "features" and one.lock is not None:
            one.lock.unlink()
        return
    for child in sorted(one.path.iterdir(), key=lambda child: child.name != "result.json"):
        if child != one.lock:
            remove(child)
    one.lock.unlink()
    one.path.rmdir()


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
