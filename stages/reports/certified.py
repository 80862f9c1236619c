"""The eps that is certified at every lambda, while a path is solved whose rule knows it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.stages.solver.counts import CERTIFIED


def certified_rows(trace: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of a trace that report a certified eps: lambda, passes, seconds and eps, (rows,) each.

    There are no rows if the path's rule does not know it.
    """
    eps = trace.get(CERTIFIED, np.full(trace["passes"].shape, np.nan))
    known = ~np.isnan(eps)
    return {"eps": eps[known], **{name: trace[name][known] for name in ("lambda", "passes", "seconds")}}
