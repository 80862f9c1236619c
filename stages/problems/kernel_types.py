"""Types of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

JitOptions = dict[str, Any]
"""Options of numba's `njit`."""

Kernel = Callable[..., Any]
"""A function that numba compiles, or its plain form without the JIT; takes problems of any structure, and arrays."""
