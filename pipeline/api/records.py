"""Types of JSON objects, attributes, facts and options: whatever is read is checked, or converted, where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, Union

Record: TypeAlias = dict[str, Any]
"""A JSON object that was parsed, or is being made."""

Facts: TypeAlias = Mapping[str, Any]
"""The same, only read: facts of a feature store such as ``classes``, attributes of arrays, options of a configuration."""

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
"""What JSON holds."""


def flat(value: Mapping[str, object], prefix: str = "") -> Record:
    """Nested mappings as one, with dotted keys."""
    out: Record = {}
    for name, item in value.items():
        out.update(flat(item, f"{prefix}{name}.") if isinstance(item, Mapping) else {f"{prefix}{name}": item})
    return out
