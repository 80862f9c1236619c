"""A stored problem whose oracle really waits: each call sleeps in the C library, then does what it always does.

Everything else is the structure's own compiled code, so seconds are those of a solve with a slower oracle and of nothing
else: no vectors of length d, no calls of Python. The thread gives up its processor while it waits.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from numba import njit, types

from gapwise.stages.problems.chain import Chain
from gapwise.stages.problems.multiclass import Multiclass
from gapwise.stages.problems.potts import Potts
from gapwise.stages.problems.protocol import PLAIN, Problem
from gapwise.stages.problems.segmentation import FixedSegmentation, Segmentation

sleep_for = types.ExternalFunction("usleep", types.int32(types.uint32))


def slow(base: Any) -> Any:
    """The structure `base` with one more field, the microseconds that `max_oracle` waits."""
    fast = njit(**PLAIN)(base.max_oracle)

    def max_oracle(self, i, theta, y, scratch):  # type: ignore[no-untyped-def]
        sleep_for(self.microseconds)
        return fast(self, i, theta, y, scratch)

    fields = [(name, Any) for name in base._fields]
    rows: Any = NamedTuple(f"Slow{base.__name__}", [*fields, ("microseconds", int)])  # type: ignore[misc]
    own = {name: part for name, part in vars(base).items() if name not in vars(rows) and not name.startswith("__")}
    made = type(rows.__name__, (rows,), {**own, "max_oracle": max_oracle, "__module__": __name__, "__slots__": ()})
    setattr(sys.modules[__name__], made.__name__, made)  # where numba's cache on disk looks for it
    return made


SLOW = {base: slow(base) for base in (Chain, FixedSegmentation, Multiclass, Potts, Segmentation)}


def slowed(problem: Problem, seconds: float) -> Problem:
    """The same problem with an oracle that takes `seconds` longer."""
    if type(problem) not in SLOW:
        known = ", ".join(base.__name__ for base in SLOW)
        raise SystemExit(
            f"--wait: the structure {type(problem).__name__} is not one of {known}; add it to slow_oracle.SLOW"
        )
    rows: Any = problem
    waiting: Problem = SLOW[type(problem)](*rows, microseconds=round(1e6 * seconds))
    return waiting
