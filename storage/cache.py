"""Features that lie on an object store, and the copy of them that this machine maps into memory.

Their ``meta.json`` lists every file with its sha256, so that a copy is known by its contents: it lies in
``features/<name>-<sha256 of meta.json>`` below `staging.cache_root`, is checked when it is fetched, and is shared by all
processes and runs of the machine. Nothing removes it but the user. What featurize made here is kept as the copy.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from storage.files import DamagedError, aside, fsync_tree, publish, read_json, send
from storage.integrity import changed, unsealed
from storage.locks import locked
from storage.places import ObjectPlace
from storage.staging import cache_root


def keep_and_send(target: ObjectPlace, folder: Path) -> None:
    """Send finished features and keep them as this machine's copy; `folder` is used up."""
    send(target, folder)
    copy = _copy(target, (folder / "meta.json").read_bytes())
    with locked(copy.with_name(f"{copy.name}.lock"), lambda holder: None):
        if not copy.is_dir():
            fsync_tree(folder)
            os.rename(folder, copy)


def local_copy(source: ObjectPlace) -> Path:
    """The folder of this machine that has the features of `source`; fetched if it is not there.

    Raises
    ------
    DamagedError
        If what comes is not what was sent.
    """
    data = (source / "meta.json").read_bytes()
    copy = _copy(source, data)
    if copy.is_dir():
        return copy
    with locked(copy.with_name(f"{copy.name}.lock"), lambda holder: None):
        if copy.is_dir():
            return copy
        folder = aside(copy)
        shutil.rmtree(folder, ignore_errors=True)
        source.download(folder, source.files())
        if damage := changed(folder, _files(folder)):
            shutil.rmtree(folder)
            raise DamagedError(f"{source}: {damage}; run.stage=featurize makes the features again")
        publish(copy)
    return copy


def mended_copy(source: ObjectPlace) -> Path:
    """Like `local_copy`; a copy that is damaged by now is fetched again."""
    copy = local_copy(source)
    if changed(copy, _files(copy)):
        shutil.rmtree(copy)
        copy = local_copy(source)
    return copy


def _files(folder: Path) -> dict[str, dict[str, object]]:
    """What meta.json says of the files beside it; nothing, of features that are too old to."""
    return dict(unsealed(read_json(folder / "meta.json"), folder / "meta.json").get("files", {}))


def _copy(source: ObjectPlace, meta: bytes) -> Path:
    return cache_root() / "features" / f"{source.name}-{hashlib.sha256(meta).hexdigest()[:16]}"
