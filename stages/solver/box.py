"""The box: w = clip(u)."""

from __future__ import annotations

from numba import njit

from gapwise.stages.problems.inner import inner
from gapwise.stages.problems.protocol import PLAIN


@inner(**PLAIN)
def clip_into(u, lower, upper, w):
    """w <- clip(u)."""
    for j in range(u.size):
        w[j] = min(max(u[j], lower[j]), upper[j])


@njit(cache=True, **PLAIN)
def clip(u, lower, upper, w):
    """`clip_into` for callers in Python: its machine code is kept on disk, that of an inner function is not."""
    clip_into(u, lower, upper, w)
