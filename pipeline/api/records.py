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
