"""Kinds of storage, one class each, behind `Backend`; `backend(location)` is the one that serves a location."""

from pkgutil import extend_path

from gapwise.storage.backend.base import (
    Backend,
    ChangedError,
    DamagedError,
    Holder,
    L,
    Location,
    LockedError,
    UrlPath,
    backend,
    location,
)

__path__ = extend_path(__path__, __name__)  # a folder on PYTHONPATH with the same tree adds parts
__all__ = [
    "Backend",
    "ChangedError",
    "DamagedError",
    "Holder",
    "L",
    "Location",
    "LockedError",
    "UrlPath",
    "backend",
    "location",
]
