"""Types of JSON objects and zarr attributes as they are read: each value is checked, or converted, where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
"""A JSON object that was read."""

Facts: TypeAlias = Mapping[str, Any]
"""One that is only looked at."""
