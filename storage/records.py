"""Types of JSON objects and zarr attributes as they are read: each value is checked, or converted, where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]
"""A JSON object, parsed."""

Facts: TypeAlias = Mapping[str, Any]
"""The same, of which nothing is changed."""
