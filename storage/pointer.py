"""The few objects that are ever rewritten, HEAD and leases, and how two writers of one are told apart.

`swap` replaces an object only if it still is what the caller last saw. On S3 that is one conditional PUT (If-Match,
If-None-Match): of two writers exactly one succeeds. Within one process (``memory://``) a mutex does the same. Other
stores get a comparison followed by a PUT, which sees a writer that came before, but not one that comes in between.
"""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

from storage.files import DamagedError, read_json, write_json
from storage.places import ObjectPlace, Place, named

_one_at_a_time = threading.Lock()
CONDITIONAL = ("s3", "s3a")


class ChangedError(OSError):
    """Another process has written the object since it was last seen."""


def look(place: ObjectPlace) -> tuple[bytes | None, str | None]:
    """(contents, version) of an object; (None, None) if there is none."""
    try:
        with named(place):
            if place.protocol in CONDITIONAL:
                return _get_s3(place)
            data = place.read_bytes()
            return data, hashlib.sha256(data).hexdigest()
    except FileNotFoundError:
        return None, None


def swap(place: ObjectPlace, data: bytes, seen: str | None) -> str:
    """Make `data` the contents if the version still is `seen` (None: there is no such object); the new version.

    Raises
    ------
    ChangedError
        If it is not. That `data` is there already is no error: a PUT whose answer was lost is repeated by the client. So
        no two writers may ever write the same.
    """
    with _one_at_a_time:
        found, version = look(place)
        if version != seen:
            if found == data and version is not None:
                return version
            raise ChangedError(f"{place}: another process has written it")
        if place.protocol not in CONDITIONAL:
            place.write_bytes(data)
            return hashlib.sha256(data).hexdigest()
        try:
            return _put_s3(place, data, seen)
        except OSError as error:
            if "ondition" not in str(error):  # PreconditionFailed, ConditionalRequestConflict
                raise
            found, version = look(place)
            if found == data and version is not None:
                return version
            raise ChangedError(f"{place}: another process has written it") from error


def _get_s3(place: ObjectPlace) -> tuple[bytes, str]:
    from fsspec.asyn import sync

    fs = place.fs
    bucket, key, _ = fs.split_path(place.key)

    async def get() -> tuple[bytes, str]:
        found = await fs._call_s3("get_object", Bucket=bucket, Key=key)
        async with found["Body"] as body:
            return await body.read(), str(found["ETag"])

    data, version = sync(fs.loop, get)
    return data, version


def _put_s3(place: ObjectPlace, data: bytes, seen: str | None) -> str:
    fs = place.fs
    bucket, key, _ = fs.split_path(place.key)
    condition = {"IfNoneMatch": "*"} if seen is None else {"IfMatch": seen}
    with named(place):
        return str(fs.call_s3("put_object", Bucket=bucket, Key=key, Body=data, **condition)["ETag"])


class Pointer:
    """A JSON file that names what is current: replaced atomically, on an object store only by who saw the last one."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self._seen: str | None = None

    def read(self) -> Any:
        """What it says; FileNotFoundError, or DamagedError."""
        if isinstance(self.path, Path):
            return read_json(self.path)
        data, self._seen = look(self.path)
        if data is None:
            raise FileNotFoundError(f"{self.path}: no such object")
        try:
            return json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DamagedError(f"{self.path}: not valid JSON ({error}); the object is damaged") from error

    def write(self, value: Any) -> None:
        """Make it say `value`; ChangedError if another process has moved it since it was last read or written."""
        if isinstance(self.path, Path):
            write_json(self.path, value)
        else:
            self._seen = swap(self.path, (json.dumps(value, indent=1, allow_nan=True) + "\n").encode(), self._seen)
