"""Where runs are, which one a word on the command line means, and how large they are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from gapwise.storage.backend import Location, location
from gapwise.storage.files import changed_at

SHARED = ("features", "sweeps", "mlruns")
"""Folders that commands, and MLflow, make beside the run directories."""
LATEST = "@latest"
"""The run whose manifest changed last."""
OF_A_RUN = ("manifest.json", "lock", "state", "invocations")
"""What a run directory has from its beginning, some of it even where it is damaged."""


def root_of(given: str | None) -> Location:
    """The folder of all runs; ValueError if there is none."""
    root = location(given or os.environ.get("GAPWISE_RUNS") or "runs")
    if not root.is_dir():
        raise ValueError(f"{root}: expected the folder of the runs, found none; name it with --root or $GAPWISE_RUNS")
    return root


def folders(root: Location) -> list[Location]:
    """All folders of `root` but those that runs share, sorted by name; `run_state` says whether each is a run."""
    paths = [path for path in root.iterdir() if not path.name.startswith(".") and path.name not in SHARED]
    return sorted((path for path in paths if path.is_dir()), key=lambda path: path.name)


def is_run(path: Location) -> bool:
    """Whether a folder looks like a run directory, be it damaged."""
    return any((path / name).exists() for name in OF_A_RUN)


def named(word: str, root: str | None) -> Location:
    """The run directory that `word` means: a path or URL, the beginning of a run's name or of its key, or `LATEST`.

    Raises
    ------
    ValueError
        If it means none, or several, which are listed.
    """
    if not word:
        raise ValueError(
            "expected a run: its directory, or the beginning of its name or key; gapwise ls lists the runs"
        )
    if (location(word) / "summary.json").is_file():
        raise ValueError(f"{word}: is a sweep; gapwise report shows it as a whole, gapwise ls its runs")
    if "://" in word or os.sep in word or (Path(word) / "manifest.json").is_file():
        path = location(word)
        if not path.is_dir() or not is_run(path):
            raise ValueError(f"{path}: expected a run directory; gapwise ls lists the runs")
        return path
    where = root_of(root)
    runs = [path for path in folders(where) if is_run(path)]
    if word == LATEST and runs:
        return max(runs, key=lambda path: changed_at(path / "manifest.json") or 0.0)
    matches = [path for path in runs if path.name == word] or [
        path for path in runs if path.name.startswith(word) or path.name.rsplit("-", 1)[-1].startswith(word)
    ]
    if len(matches) != 1:
        several = f"{len(matches)} runs begin with that: {', '.join(path.name for path in matches[:5])}"
        why = several if matches else f"no run in {where} has such a name or key"
        raise ValueError(f"{word}: {why}; gapwise ls lists the runs")
    return matches[0]


def all_named(words: Sequence[str], root: str | None) -> list[Location]:
    """`named` for each word, every run once."""
    return list(dict.fromkeys(named(word, root) for word in words))


def bytes_below(path: Location) -> int | None:
    """Bytes of a file, or of all files below a folder; of a link its own; None for a location on another machine.

    Symbolic links are never followed.
    """
    if not isinstance(path, Path):
        return None
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            return path.lstat().st_size
        return 0
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):  # removed since it was listed
                total += os.lstat(os.path.join(folder, name)).st_size
    return total
