"""Types of what is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Union

ArraySpec = tuple[str, tuple[str, ...], str, str]
"""A committed array: name, dimensions, dtype ("label": the structure's label type), meaning."""

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
"""What JSON holds."""

Attrs = Mapping[str, Any]
"""Committed attributes, as JSON holds them; whoever reads one checks it."""


def number(attrs: Mapping[str, object], name: str) -> float:
    """A committed number; TypeError, naming it, if it is none."""
    value = attrs[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    return float(value)
