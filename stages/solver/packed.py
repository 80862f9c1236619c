"""Types of what is committed."""

from __future__ import annotations

from typing import TypeAlias, Union

ArraySpec = tuple[str, tuple[str, ...], str, str]
"""A committed array: name, dimensions, dtype ("label": the structure's label type), meaning."""

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
"""What JSON holds."""
