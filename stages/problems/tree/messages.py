"""The message of an arc, without the work that can raise none of its maxima; `maxsum` has its formula.

Pairs of types are taken in the order of their upper bounds, and none is tried once a bound is below all of the message. The
*room* of type t at eight columns (r, s), ..., (r, s + 7) is the least M(r, s) - phi_t(r, s). A pair of types raises none of
the eight where the child's score plus the deformation scores is at most their room:

- before the first axis, a row of the parent is left out by max_b G_u(a, b) in place of G_u;
- after it, eight columns are left out where, for every column b of the child, its result plus the largest deformation score
  between b and the eight is at most their room. Otherwise the second axis tries the columns b from the first to the last for
  which it is more.

Rooms are lowered by more than roundings can be, so what is left out changes no bit of a message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.simd import add, greater_bits, larger, largest, load, store
from gapwise.stages.problems.tree.rows import (
    HIGHEST,
    LOWEST,
    ROUNDING,
    above,
    best_sums,
    greatest,
    greatest_sum,
    least_room,
    padded,
    smallest,
)


@njit(**PLAIN)
def _order_pairs(types, bounds, order):
    """order <- pairs of types by falling bounds."""
    for k in range(types * types):
        j = k
        while j > 0 and bounds[order[j - 1]] < bounds[k]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = k


@njit(**PLAIN)
def message_of(rows, columns, types, message, child, parent, tables, pair, tops, bounds, order, rooms, ages):
    """message <- M of an arc, from G_u in `child` and phi_t in `parent`; the rest is workspace of `maxsum.workspace`."""
    stride, high = padded(columns), padded(rows)
    size, length = rows * stride, tables.size // (4 * types)
    of_child, of_parent = types * high, types * high + types
    for r in range(rows):
        for c in range(stride):
            message[r * stride + c] = LOWEST if c < columns else HIGHEST
    for u in range(types):
        for r in range(high):
            tops[u * high + r] = greatest(child, u * size + r * stride, stride) if r < rows else -np.inf
        tops[of_child + u] = greatest(tops, u * high, high)
        tops[of_parent + u] = greatest(parent, u * size, size)
    rooms[:], ages[: types * high], ages[types * high :] = HIGHEST, -1, 0
    for t in range(types):
        for u in range(types):
            own, theirs = 2 * t * length, 2 * (types + u) * length
            springs = greatest_sum(tables, own, tables, theirs, padded(2 * rows - 1))
            springs += greatest_sum(tables, own + length, tables, theirs + length, padded(2 * columns - 1))
            bounds[t * types + u] = tops[of_child + u] + tops[of_parent + t] + springs
    _order_pairs(types, bounds, order)
    least = LOWEST
    for number in range(types * types):
        t, u = order[number] // types, order[number] % types
        if bounds[order[number]] <= least:
            break
        _pair(t, u, number, rows, columns, types, message, child, parent, tables, pair, tops, rooms, ages)
        if number % 8 == 0:
            least = smallest(message, 0, size)


@njit(**PLAIN)
def _pair(t, u, number, rows, columns, types, message, child, parent, tables, pair, tops, rooms, ages):
    """Raise `message` by what types t and u allow.

    ages: after how many pairs rooms[t, r] was computed, for each t and r; then after how many row r of the message last
    rose. `pair` holds the deformation scores of rows and of columns, those of `_springs_of_eights`, and results for a row.
    """
    stride, high, length = padded(columns), padded(rows), tables.size // (4 * types)
    size, count, wide = rows * stride, stride // 8, padded(stride // 8)
    fine, here, eight = 2 * length, 4 * length, 4 * length + stride
    own, theirs, changed = 2 * t * length, 2 * (types + u) * length, types * high
    for k in range(0, 2 * length, 8):
        store(pair, k, add(load(tables, own + k), load(tables, theirs + k)))
    top = _springs_of_eights(pair, columns, length, fine, eight)
    for r in range(rows):
        start, room, first = r * stride, (t * high + r) * wide, rows - 1 - r
        if ages[t * high + r] < ages[changed + r]:
            for p in range(count):
                k = start + 8 * p
                rooms[room + p] = least_room(message, k, parent, t * size + k, 8)
            ages[t * high + r] = number
        most = smallest(rooms, room, wide)
        begin, end = above(tops, u * high, pair, first, high, most - top - ROUNDING * (abs(most) + abs(top)))
        if end == 0:
            continue
        child_start = u * size + begin * stride
        best_sums(child, child_start, stride, end - begin, pair, first + begin, pair, here, stride)
        for c in range(0, stride, 8):
            b, e = above(pair, here, pair, fine + stride - 8 - c, stride, rooms[room + c // 8])
            e = min(e, columns)
            if b < e:
                # the springs of the columns, by place of the parent: those of the child's next column begin an entry earlier
                best_sums(pair, length + columns - 1 - b + c, -1, e - b, pair, here + b, pair, eight, 8)
                best, before = add(load(pair, eight), load(parent, t * size + start + c)), load(message, start + c)
                if greater_bits(best, before) != 0:
                    store(message, start + c, larger(best, before))
                    ages[changed + r] = number + 1


@njit(**PLAIN)
def _springs_of_eights(pair, columns, length, fine, eight):
    """pair[fine + stride - 8 - c + b] <- the largest deformation score between the child's column b and the parent's columns
    c to c + 7; returns the largest of all. pair[eight:eight + 8] is workspace."""
    count, top = columns + padded(columns) - 8, LOWEST
    for k in range(count, 2 * padded(columns) - 8):
        pair[fine + k] = LOWEST
    for k in range(0, count, 8):
        best = load(pair, length + k)
        for j in range(1, 8):
            best = larger(load(pair, length + k + j), best)
        store(pair, eight, best)
        top = max(top, largest(best))
        for j in range(min(8, count - k)):
            pair[fine + count - 1 - k - j] = pair[eight + j]
    return top
