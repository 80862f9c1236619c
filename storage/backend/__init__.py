"""Where files may lie: on this machine, or behind a URL that fsspec opens."""

from gapwise.storage.backend.locations import (
    ChangedError,
    DamagedError,
    Holder,
    L,
    Location,
    LockedError,
    UrlPath,
    location,
    location_in,
)

__all__ = [
    "ChangedError",
    "DamagedError",
    "Holder",
    "L",
    "Location",
    "LockedError",
    "UrlPath",
    "location",
    "location_in",
]
