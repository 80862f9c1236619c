"""Compiled arithmetic over the weights of a proximal problem (`catalyst`): each function reads its vectors once.

Where w has millions of numbers, these vectors take most of the time between two passes over the cache, and numpy would
write an intermediate one for every operation.
"""

from __future__ import annotations

from numba import njit

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import FAST, PLAIN

CHUNK = 4096
"""Sums are made of sums over so many weights, so that rounding does not grow with d."""


@inner(**FAST)
def _sums(u, centre, ratio, w):
    norm2 = distance2 = 0.0
    for j in range(u.size):
        v = u[j] + ratio * (u[j] - centre[j])
        norm2 += v * v
        distance2 += (w[j] - v) * (w[j] - v)
    return norm2, distance2


@njit(cache=True, **PLAIN)
def dual_norms(u, centre, ratio, w):
    """(||v||^2, ||w - v||^2) of v = u + ratio (u - centre); all (d,), ratio = kappa / lambda."""
    norm2 = distance2 = 0.0
    for start in range(0, u.size, CHUNK):
        of = slice(start, start + CHUNK)
        a, b = _sums(u[of], centre[of], ratio, w[of])
        norm2, distance2 = norm2 + a, distance2 + b
    return norm2, distance2


@njit(cache=True, **PLAIN)
def move_towards(mean, w, share):
    """mean += share (w - mean); both (d,)."""
    for j in range(mean.size):
        mean[j] += share * (w[j] - mean[j])


@njit(cache=True, **PLAIN)
def recentre(u, w, before, centre, momentum, pull):
    """y' = w + momentum (w - before), u += pull (y' - y), before = w, y = y'; pull = kappa / (lambda + kappa).

    All (d,); y is `centre`. v stays, since (lambda + kappa) u - kappa y does. An empty `w` means that it is u.
    """
    for j in range(u.size):
        x = w[j] if w.size else u[j]
        moved = x + momentum * (x - before[j])
        u[j] += pull * (moved - centre[j])
        before[j], centre[j] = x, moved
