"""Ways to divide blocks among workers, none of which may change a bit of the result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from gapwise.stages.problems.parallel import Spread


def backwards(fn, ranges):
    """The last range first."""
    return [fn(*part) for part in reversed(ranges)][::-1]


def elsewhere(problem, threads: int = 8) -> Spread:
    """Other processes as far as the solver can tell: a problem of their own, w read-only, the last part first."""
    copy = type(problem)(*problem)

    def call(fn, split, w, parts, places):
        assert split == "train"
        assert len(places) == len(parts)
        w = w.copy()
        w.flags.writeable = False
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda part: fn(copy, w, np.array(part, np.int64)), reversed(parts)))[::-1]

    return Spread(elsewhere=call)
