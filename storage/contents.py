"""What is in files, wherever they are and whatever they are called: the part of a key that raw data make up.

Reading 30 GB takes half a minute, so large sets of files are read once: a file that has the path, size, time of change and
inode that it had when it was read is not read again. `KNOWN` keeps the digests, beside the features. A file changed less
than `SETTLED` seconds before it was read is not kept, because a later edit might leave the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from gapwise.storage.backend.no_links import write_new
from gapwise.storage.integrity import file_digest

KNOWN = "digests.json"
SMALL = 64 << 20
"""Sets of files of fewer bytes are read each time."""
SETTLED = 2.0
"""Seconds; coarser than the clock of any file system in use."""
MANY = 20
"""More files than this are summed up in one digest."""


def contents(files: Mapping[str, Path], folder: Path) -> dict[str, object]:
    """sha256 of every file, by the names given; of many files their number and one digest of all names and digests.

    Parameters
    ----------
    files : mapping
        Files by names that do not depend on where they are.
    folder : Path
        Where the digests of large sets are kept; made if need be. If it cannot be written to, nothing is kept.

    Raises
    ------
    OSError
        If a file cannot be read; names it.
    """
    stats = {name: path.stat() for name, path in files.items()}
    small = sum(stat.st_size for stat in stats.values()) < SMALL
    known = {} if small else _known(folder / KNOWN)
    cached, digests = dict(known), {}
    for name, path in sorted(files.items()):
        stat, resolved = stats[name], str(path.resolve())
        mark = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        entry = known.get(resolved)
        if entry is None or entry[:3] != mark:
            entry = [*mark, file_digest(path)]
            if time.time_ns() - stat.st_mtime_ns > SETTLED * 1e9:
                cached[resolved] = entry
        digests[name] = entry[3]
    if not small and cached != known:
        _keep(folder / KNOWN, cached)
    if len(digests) <= MANY:
        return digests
    return {"files": len(digests), "all": hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()}


def _known(file: Path) -> dict[str, list[object]]:
    """The digests kept in `file`; none if it is not there, damaged, or a link."""
    if file.is_symlink():
        return {}
    try:
        entries = json.loads(file.read_bytes())
        return {str(name): [*entry[:3], str(entry[3])] for name, entry in entries.items()}
    except (OSError, ValueError, AttributeError, TypeError, IndexError, KeyError):
        return {}


def _keep(file: Path, known: Mapping[str, object]) -> None:
    with contextlib.suppress(OSError):  # a read-only folder costs time, not the run
        file.parent.mkdir(parents=True, exist_ok=True)
        mine = file.with_name(f".tmp-{file.name}-{os.getpid()}")
        write_new(mine, json.dumps(known).encode())
        mine.replace(file)
