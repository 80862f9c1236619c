"""What is committed: types of arrays, the scalars of a running solve, the columns of its trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapwise.records import Facts

NEVER = 1 << 60
"""A count that is never reached."""


@dataclass
class Counts:
    """The scalars that every method commits, all plain numbers."""

    lam: float = math.nan
    breakpoint: int = 0
    exact_due: bool = True
    calls_before: int = 0
    """Oracle calls before this lambda."""
    seconds: float = 0.0
    """Seconds of solving since the beginning, commits excluded."""
    seconds_before: float = 0.0
    initial_calls: int = 0
    """Oracle calls made before the first lambda (path start)."""
    gap_passes: int = 0
    """Exact passes, of n oracle calls each."""
    slack: float = 0.0
    """What the bounds of an approximate oracle added to the gap at the last exact pass; 0 if the oracle is exact."""
    switched: float = 0.0
    """The lambda from which on the method goes on with other steps than its own; 0 before."""
    proven: float = 1.0
    """Share of the blocks whose vertex was proven to be a maximiser in that pass; 0 without a bound."""
    exact_total: float = 1.0
    """Sum of block gaps at the last exact pass at this lambda; 1 before the first (O16)."""
    dual: float = math.nan
    """Dual objective at the last exact pass."""
    last_refresh: int = 0
    """Steps at the last exact pass."""
    kappa: float = 0.0
    """Weight of the proximal term; 0 without one."""
    permutations: int = 0
    """Passes in permuted order so far: the seed of the next permutation."""
    marks: list[int] = field(default_factory=list)
    """Step counts at the last few passes after which labellings without use are dropped."""


TRACE = ("breakpoint", "lambda", "passes", "oracle_calls", "steps", "seconds", "timestamp_ms", "gap", "dual", "primal")
"""Columns of the trace: one row for each certificate."""

CERTIFIED = "certified"
"""The column after them on a path whose rule knows, after each solved lambda, which eps is certified at every one."""

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
