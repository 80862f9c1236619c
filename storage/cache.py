"""Local copies of remote features, to be mapped into memory.

The features' ``meta.json`` lists every file with its sha256, so a copy is identified by its contents: it is stored in
``features/<name>-<sha256 of meta.json>`` below `staging.cache_root`. It is checked when it is fetched and shared by all
processes and runs of the machine. Only the user removes it. Features made on this machine become its local copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from gapwise.storage.backend import DamagedError, Location, UrlPath
from gapwise.storage.backend.remote import download, send
from gapwise.storage.backend.staging import cache_root
from gapwise.storage.files import locked, make_durable, read_json, replaced
from gapwise.storage.integrity import changed, unsealed


def keep(target: UrlPath, folder: Path) -> None:
    """Send the features in `folder` to `target`, and move them into the cache."""
    send(target, folder)
    copy = _copy(target)
    with locked(_lock(copy), _patiently):
        if not copy.is_dir():
            make_durable(folder)
            os.rename(folder, copy)


def local_copy(source: Location, check: bool = False) -> Path:
    """A folder on this machine with the features at `source`: itself, or a copy that is fetched if necessary.

    With `check`, a copy that was there is compared with its checksums and fetched again if it is damaged.

    Raises
    ------
    DamagedError
        If the files do not match their checksums.
    """
    if isinstance(source, Path):
        return source
    copy = _copy(source)
    if check and copy.is_dir() and changed(copy, _files(copy)):
        shutil.rmtree(copy)
    if copy.is_dir():
        return copy
    with locked(_lock(copy), _patiently):
        if copy.is_dir():
            return copy
        with replaced(copy) as folder:
            download(source, folder)
            if damage := changed(folder, _files(folder)):
                raise DamagedError(f"{source}: {damage}; run.until=featurize makes the features again")
    return copy


def _files(folder: Path) -> dict[str, dict[str, object]]:
    """The checksums in meta.json."""
    meta = folder / "meta.json"
    return dict(unsealed(read_json(meta), meta).get("files", {}))


def _copy(source: UrlPath) -> Path:
    meta = (source / "meta.json").read_bytes()
    return cache_root() / "features" / f"{source.name}-{hashlib.sha256(meta).hexdigest()[:16]}"


def _lock(copy: Path) -> Path:
    return copy.with_name(f"{copy.name}.lock")


def _patiently(holder: str) -> None:
    """Wait for the process that fetches the same copy."""
