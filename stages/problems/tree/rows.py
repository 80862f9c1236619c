"""Rows of numbers, eight at a time: maxima, maxima of sums, and the bounds that `maxsum` prunes with.

A row of a grid is padded to a multiple of eight by -inf.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import WIDTH, add, broadcast, larger, largest, load, multiply, store

LOWEST = -1e200
"""Below every score, and finite, so that differences are numbers."""


@njit(**PLAIN)
def padded(columns):
    """Length of a stored row of the grid."""
    return (columns + WIDTH - 1) // WIDTH * WIDTH


@njit(**PLAIN)
def _four(x, start, stride, count, table, first, out, to):
    """out[to:to + 32] <- max_k x[start + k stride:] + table[first + k], for k < count."""
    a0 = a1 = a2 = a3 = broadcast(-np.inf)
    o = start
    for k in range(count):
        b = broadcast(table[U(first + k)])
        a0, a1 = larger(add(load(x, o), b), a0), larger(add(load(x, o + 8), b), a1)
        a2, a3 = larger(add(load(x, o + 16), b), a2), larger(add(load(x, o + 24), b), a3)
        o += stride
    store(out, U(to), a0)
    store(out, U(to + 8), a1)
    store(out, U(to + 16), a2)
    store(out, U(to + 24), a3)


@njit(**PLAIN)
def _two(x, start, stride, count, table, first, out, to):
    """As `_four`, for 16 columns."""
    a0 = a1 = broadcast(-np.inf)
    o = start
    for k in range(count):
        b = broadcast(table[U(first + k)])
        a0, a1 = larger(add(load(x, o), b), a0), larger(add(load(x, o + 8), b), a1)
        o += stride
    store(out, U(to), a0)
    store(out, U(to + 8), a1)


@njit(**PLAIN)
def _one(x, start, stride, count, table, first, out, to):
    """As `_four`, for 8 columns."""
    a0 = broadcast(-np.inf)
    o = start
    for k in range(count):
        a0 = larger(add(load(x, o), broadcast(table[U(first + k)])), a0)
        o += stride
    store(out, U(to), a0)


@njit(**PLAIN)
def best_sums(x, start, stride, count, table, first, out, to, columns):
    """out[to + j] <- max over k < count of x[start + k stride + j] + table[first + k], for j < columns, a multiple of 8."""
    done = 0
    while columns - done >= 32:
        _four(x, start + done, stride, count, table, first, out, to + done)
        done += 32
    if columns - done >= 16:
        _two(x, start + done, stride, count, table, first, out, to + done)
        done += 16
    if columns - done >= 8:
        _one(x, start + done, stride, count, table, first, out, to + done)


@njit(**PLAIN)
def greatest(x, start, count):
    """The largest of x[start:start + count]; count is a multiple of 8."""
    best = load(x, start)
    for k in range(8, count, 8):
        best = larger(load(x, start + k), best)
    return largest(best)


@njit(**PLAIN)
def greatest_sum(x, start, y, first, count):
    """The largest of x[start + k] + y[first + k] for k < count, a multiple of 8."""
    best = add(load(x, start), load(y, first))
    for k in range(8, count, 8):
        best = larger(add(load(x, start + k), load(y, first + k)), best)
    return largest(best)


@njit(**PLAIN)
def most_gain(bounds, offset, phi, message, start, count):
    """The largest of bounds[offset + c] + phi[c] - message[start + c] for c < count, a multiple of 8."""
    best, minus = broadcast(LOWEST), broadcast(-1.0)
    for c in range(0, count, 8):
        gain = add(add(load(bounds, offset + c), load(phi, c)), multiply(minus, load(message, start + c)))
        best = larger(gain, best)
    return largest(best)


@njit(**PLAIN)
def within(x, start, y, first, count, more):
    """First and one past the last k < count with x[start + k] + y[first + k] + more > 0."""
    begin, end = 0, count
    while begin < end and x[start + begin] + y[first + begin] + more <= 0.0:
        begin += 1
    while end > begin and x[start + end - 1] + y[first + end - 1] + more <= 0.0:
        end -= 1
    return begin, end
