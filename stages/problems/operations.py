"""What an oracle call on a block costs, and what a step without one: operations counted from sizes.

No clock is read, so the same data give the same numbers on every machine and under every load. The unit is a multiply-add
in a loop over rows of numbers, about 0.1 ns. A memory access out of order, or a step of a search with its comparisons,
counts as `SEARCH` of them. S15's slope rule (`methods.mpbcfw`) weighs an oracle call against approximate steps by these
numbers, so they should be right within a factor of two or so.

A structure declares them as a property `operations`, means over its blocks. For a structure without that property,
`operations_of` derives them from the sizes of local vectors and labellings.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gapwise.stages.problems.capabilities import optional_of

if TYPE_CHECKING:
    from gapwise.stages.problems.protocol import Problem

SEARCH = 10.0
"""Operations that a memory access out of order, or a step of a search, counts as."""


class Operations(NamedTuple):
    """What a block takes in the mean."""

    oracle: float
    """`scores` and `max_oracle`"""
    visit: float
    """scores of a few known labellings, and the `push` of a move between them"""


PYTHON = Operations(oracle=1e7, visit=3e5)
"""Of an oracle in Python or in a program, about 1 ms and 30 us. A run does not measure them, because each machine would then
have bits of its own."""


def operations_of(problem: Problem) -> Operations:
    """What the structure declares; otherwise `SEARCH` operations a visit for each local coordinate and label, and four times
    as many an oracle call."""
    declared = optional_of(problem, "operations")
    if declared is not None:
        return Operations(*declared)
    size = mean_size(problem.local_ptr) + mean_size(problem.label_ptr)
    return Operations(oracle=4.0 * SEARCH * size, visit=SEARCH * size)


def mean_size(ptr: np.ndarray) -> float:
    """Mean length of the blocks between offsets (n + 1,)."""
    return float(ptr[-1] - ptr[0]) / max(ptr.size - 1, 1)


def are_operations(declared: object) -> bool:
    """Whether a declaration can be counted with: two finite numbers > 0."""
    return (
        isinstance(declared, tuple)
        and len(declared) == 2
        and all(isinstance(number, int | float) and math.isfinite(number) and number > 0.0 for number in declared)
    )
