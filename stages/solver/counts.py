"""The scalars of a running solve, and the columns of its trace: what is committed besides the arrays (DESIGN 3.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

NEVER = 1 << 60
"""A count that is never reached."""


@dataclass
class Counts:
    """The scalars of the committed state besides the arrays; all of them plain numbers."""

    lam: float = math.nan
    breakpoint: int = 0
    exact_due: bool = True
    exact_total: float = 1.0
    """Last exact sum of gaps at this lambda; the authors use 1 before there is one."""
    dual: float = math.nan
    """Dual objective at the last exact pass."""
    gap_passes: int = 0
    calls_before: int = 0
    """Oracle calls before this lambda."""
    next_refresh: int = 0
    """Oracle calls in steps at which the next exact pass is due."""
    last_refresh: int = 0
    """Steps at the last exact pass."""
    seconds: float = 0.0
    """Seconds of solving since the beginning, commits excluded."""
    seconds_before: float = 0.0
    initial_calls: int = 0
    """Oracle calls made before the first lambda (init_path)."""
    kappa: float = 0.0
    """Weight of the proximal term (DESIGN 2.8); 0 for the plain methods and in the finish."""
    curvature: float = 0.0
    """Mean ||B_i delta||^2 over mean slope of the first exact pass's moves: lambda's own scale (`accelerated`)."""
    permutations: int = 0
    """Passes in a permuted order so far: the seed of the next order."""
    marks: list[int] = field(default_factory=list)
    """Step counts at the latest exact passes of an accelerated solve."""
    points: int = 0
    """Points in the mean of an accelerated solve."""


TRACE = ("breakpoint", "lambda", "passes", "oracle_calls", "steps", "seconds", "timestamp_ms", "gap", "dual", "primal")
"""Columns of the trace: one row for each certificate."""
