"""The type of a committed array, and how a committed number is read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts

Arrays = Mapping[str, np.ndarray]
"""Committed arrays by name."""

ArraySpec = tuple[str, tuple[str, ...], str, str]
"""A committed array: name, dimensions, dtype ("label": the structure's label type), meaning."""


def number(attrs: Facts, name: str) -> float:
    """A committed number; TypeError, naming it, if it is none."""
    value = attrs[name]
    if not isinstance(value, int | float):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    return float(value)
