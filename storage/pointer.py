"""HEAD, the only file that is rewritten: it names what is current, and moves only from the version its writer saw last."""

from __future__ import annotations

import hashlib
import threading

from gapwise.storage.backend import ChangedError, Location, UrlPath, remote
from gapwise.storage.files import json_bytes, parsed, write

_writing = threading.Lock()


class Pointer:
    """A JSON file that is replaced atomically, and only by a writer that saw its last version.

    On a disk the lock of the run excludes writers of other processes.
    """

    def __init__(self, path: Location) -> None:
        self.path = path
        self._seen: str | None = None

    def read(self) -> object:
        """The value; FileNotFoundError if there is none, DamagedError if it is not JSON."""
        data, self._seen = self._look()
        if data is None:
            raise FileNotFoundError(f"{self.path}: no such file")
        return parsed(data, self.path)

    def write(self, value: object) -> None:
        """Replace the value; ChangedError if another process has done so since it was last read or written here."""
        data = json_bytes(value)
        if isinstance(self.path, UrlPath):
            self._seen = remote.swap(self.path, data, self._seen)
            return
        with _writing:
            if self._look()[1] != self._seen:
                raise ChangedError(f"{self.path}: another process has written it")
            write(self.path, data)
            self._seen = _version(data)

    def _look(self) -> tuple[bytes | None, str | None]:
        """Contents and version; (None, None) if there is no such file."""
        if isinstance(self.path, UrlPath):
            return remote.look(self.path)
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None, None
        return data, _version(data)


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
