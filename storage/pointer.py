"""HEAD, the only file that is rewritten: it names what is current, and moves only from the version its writer saw last."""

from __future__ import annotations

from gapwise.storage.backend import Location, backend
from gapwise.storage.files import json_bytes, parsed


class Pointer:
    """A JSON file that is replaced atomically, and only by a writer that saw its last version."""

    def __init__(self, path: Location) -> None:
        self.path = path
        self._seen: str | None = None

    def read(self) -> object:
        """The value; FileNotFoundError if there is none, DamagedError if it is not JSON."""
        data, self._seen = backend(self.path).look(self.path)
        if data is None:
            raise FileNotFoundError(f"{self.path}: no such file")
        return parsed(data, self.path)

    def write(self, value: object) -> None:
        """Replace the value; ChangedError if another process has done so since it was last read or written here."""
        self._seen = backend(self.path).swap(self.path, json_bytes(value), self._seen)
