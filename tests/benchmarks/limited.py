"""Processes with a limit on their memory, which counts the pages of files they have read: Linux control groups, as root."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path("/sys/fs/cgroup")


class Limited(NamedTuple):
    """A control group of either version."""

    folder: Path

    @property
    def within(self) -> list[str]:
        """What a command is started with to run in the group."""
        return ["sh", "-c", f'echo $$ > {self.folder / "cgroup.procs"} && exec "$@"', "sh"]

    def peak(self) -> float:
        """The most MB that its processes have had at a time, pages of files included."""
        names = "memory.peak", "memory.max_usage_in_bytes"
        return next(int((self.folder / name).read_text()) / 2**20 for name in names if (self.folder / name).is_file())


@contextlib.contextmanager
def limited(name: str, megabytes: float) -> Iterator[Limited]:
    """A group that is removed at the end, when its processes have ended."""
    new = (ROOT / "cgroup.controllers").is_file()
    folder = (ROOT if new else ROOT / "memory") / f"gapwise-{name}"
    try:
        with contextlib.suppress(OSError):
            folder.rmdir()  # one that was left behind knows what it has had
        folder.mkdir(exist_ok=True)
        (folder / ("memory.max" if new else "memory.limit_in_bytes")).write_text(str(round(megabytes * 2**20)))
    except OSError as error:
        raise SystemExit(f"{folder}: {error}; limits need root and a memory controller") from None
    try:
        yield Limited(folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
