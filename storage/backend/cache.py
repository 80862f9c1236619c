"""Local copies of remote features, to be mapped into memory.

The features' ``meta.json`` lists every file with its sha256, so a copy is identified by its contents: it is stored in
``features/<name>-<sha256 of meta.json>`` below `staging.cache_root`. It is checked when it is fetched and shared by all
processes and runs of the machine. Only the user removes it. Features made on this machine become its local copy.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from gapwise.storage.backend.base import DamagedError, UrlPath
from gapwise.storage.backend.local import LocalBackend
from gapwise.storage.backend.staging import cache_root
from gapwise.storage.integrity import changed, unsealed

Download = Callable[[UrlPath, Path], None]
"""download(source, folder): all files below source into a new folder."""
_disk = LocalBackend()


def keep(target: UrlPath, folder: Path) -> None:
    """Move `folder`, which has the features that were sent to `target`, into the cache."""
    copy = _copy(target, (folder / "meta.json").read_bytes())
    with _disk.locked(_lock(copy), _patiently):
        if not copy.is_dir():
            _disk.make_durable(folder)
            os.rename(folder, copy)


def local_copy(source: UrlPath, download: Download) -> Path:
    """The folder on this machine with the features at `source`, fetched if necessary.

    Raises
    ------
    DamagedError
        If the files do not match their checksums.
    """
    copy = _copy(source, (source / "meta.json").read_bytes())
    if copy.is_dir():
        return copy
    with _disk.locked(_lock(copy), _patiently):
        if copy.is_dir():
            return copy
        folder = _disk.aside(copy)
        shutil.rmtree(folder, ignore_errors=True)
        download(source, folder)
        if damage := changed(folder, _files(folder)):
            shutil.rmtree(folder)
            raise DamagedError(f"{source}: {damage}; run.until=featurize makes the features again")
        _disk.publish(copy)
    return copy


def existing_copy(source: UrlPath) -> Path | None:
    """The folder on this machine with the features at `source`, if it is there."""
    copy = _copy(source, (source / "meta.json").read_bytes())
    return copy if copy.is_dir() else None


def checked_copy(source: UrlPath, download: Download) -> Path:
    """Like `local_copy`, but an existing copy is compared with its checksums and fetched again if it is damaged."""
    copy = local_copy(source, download)
    if changed(copy, _files(copy)):
        shutil.rmtree(copy)
        copy = local_copy(source, download)
    return copy


def _files(folder: Path) -> dict[str, dict[str, object]]:
    """The checksums in meta.json."""
    meta = folder / "meta.json"
    try:
        record = json.loads(meta.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedError(f"{meta}: not valid JSON ({error}); the file is damaged") from error
    return dict(unsealed(record, meta).get("files", {}))


def _copy(source: UrlPath, meta: bytes) -> Path:
    return cache_root() / "features" / f"{source.name}-{hashlib.sha256(meta).hexdigest()[:16]}"


def _lock(copy: Path) -> Path:
    return copy.with_name(f"{copy.name}.lock")


def _patiently(holder: str) -> None:
    """Wait for the process that fetches the same copy."""
