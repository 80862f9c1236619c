"""Rows of numbers, eight at a time: maxima, maxima of sums, and the bounds that `messages` prunes with.

A row of a grid is padded to a multiple of eight by -inf.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.simd import (
    WIDTH,
    add,
    broadcast,
    greater_bits,
    highest_bit,
    larger,
    largest,
    load,
    lowest_bit,
    multiply,
    store,
    subtract,
)

LOWEST = -1e200
"""Below every score, and finite, so that differences are numbers."""
HIGHEST = -LOWEST
"""Above every score."""
ROUNDING = 1e-15
"""More than the relative error of two roundings."""


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
def _one(x, start, stride, count, table, first, out, to):
    """As `_four`, for 8 columns."""
    a0 = a1 = a2 = a3 = broadcast(-np.inf)
    o, k = start, 0
    while k + 4 <= count:
        a0, a1 = (
            larger(add(load(x, o), broadcast(table[U(first + k)])), a0),
            larger(add(load(x, o + stride), broadcast(table[U(first + k + 1)])), a1),
        )
        a2, a3 = (
            larger(add(load(x, o + 2 * stride), broadcast(table[U(first + k + 2)])), a2),
            larger(add(load(x, o + 3 * stride), broadcast(table[U(first + k + 3)])), a3),
        )
        o += 4 * stride
        k += 4
    while k < count:
        a0 = larger(add(load(x, o), broadcast(table[U(first + k)])), a0)
        o += stride
        k += 1
    store(out, U(to), larger(larger(a0, a1), larger(a2, a3)))


@njit(**PLAIN)
def best_sums(x, start, stride, count, table, first, out, to, columns):
    """out[to + j] <- max over k < count of x[start + k stride + j] + table[first + k], for j < columns, a multiple of 8."""
    done = 0
    while columns - done >= 32:
        _four(x, start + done, stride, count, table, first, out, to + done)
        done += 32
    while columns - done >= 8:
        _one(x, start + done, stride, count, table, first, out, to + done)
        done += 8


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
def smallest(x, start, count):
    """The smallest of x[start:start + count]; count is a multiple of 8."""
    minus = broadcast(-1.0)
    least = multiply(minus, load(x, start))
    for k in range(8, count, 8):
        least = larger(multiply(minus, load(x, start + k)), least)
    return -largest(least)


@njit(**PLAIN)
def room(a, b):
    """Eight numbers x below a - b, by so much that x + b, rounded, is at most a."""
    minus = broadcast(-1.0)
    sizes = add(larger(a, multiply(minus, a)), larger(b, multiply(minus, b)))
    return subtract(subtract(a, b), multiply(broadcast(ROUNDING), sizes))


@njit(**PLAIN)
def least_room(x, start, y, first, count):
    """The least `room` of x[start + k] over y[first + k] for k < count, a multiple of 8."""
    minus = broadcast(-1.0)
    least = multiply(minus, room(load(x, start), load(y, first)))
    for k in range(8, count, 8):
        least = larger(multiply(minus, room(load(x, start + k), load(y, first + k))), least)
    return -largest(least)


@njit(**PLAIN)
def above(x, start, y, first, count, least):
    """First and one past the last k < count with x[start + k] + y[first + k] > least; if there is none, the latter is 0.

    count is a multiple of 8.
    """
    begin, end, floor = np.int64(count), np.int64(0), broadcast(least)
    for base in range(0, count, 64):
        bits = np.uint64(0)
        for k in range(base, min(base + 64, count), 8):
            bits |= greater_bits(add(load(x, start + k), load(y, first + k)), floor) << np.uint64(k - base)
        if bits != 0:
            if end == 0:
                begin = base + np.int64(lowest_bit(bits))
            end = base + np.int64(highest_bit(bits)) + 1
    return begin, end
