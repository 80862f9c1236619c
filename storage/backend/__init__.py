"""Kinds of storage, one class each, behind `Backend`; `backend(location)` is the one that serves a location."""

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
    location_in,
)

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
    "location_in",
]
