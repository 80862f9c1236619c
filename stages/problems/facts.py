"""Types of the facts about data besides its arrays: values of JSON and YAML, checked where they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Facts = Mapping[str, Any]
"""Facts of a feature store by name, such as ``classes``: what a reader's `featurize` returns, and structures read; also the
attributes of stored arrays and the contents of JSON files, where they are only read."""

Options = Mapping[str, Any]
"""Options of a configuration, or arguments of a user's class, by name."""

Json = dict[str, Any]
"""A JSON object that is being made."""

JitOptions = dict[str, Any]
"""Options of numba's `njit`."""

Kernel = Callable[..., Any]
"""A function that numba compiles, or its plain form without the JIT; takes problems of any structure, and arrays."""
