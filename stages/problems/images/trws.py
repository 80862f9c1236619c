"""Sequential tree-reweighted message passing for Potts models: a labelling, and a bound that no labelling exceeds.

The score of a labelling y of S nodes is sum_p theta_p(y_p) - sum_e c_e [y_p != y_q] with c_e >= 0. Kolmogorov (PAMI 2006)
moves parts of it between nodes and edges, which changes no labelling's score, until the sum of the separate maxima is small.
An edge e holds one message u_e in R^K, for the end that is visited next. A visit of node p computes

    b = theta_p + sum_e u_e,
    t = b / max(edges before, edges after) - u_e,    u_e <- max(t(k), max_l t(l) - c_e)

for its edges e to nodes that this pass has still to visit. One sweep visits the nodes in order and then in reverse order.
Every few sweeps the visits also label the nodes: y_p maximises theta_p(k) - sum_{visited q} c_e [k != y_q] +
sum_{others} u_e(k). Between sweeps single nodes change their labels where that helps (`improve`).

*Bound.* After a sweep u_e goes to the end of e that comes first. For **any** numbers u_e(k), whatever made them,

    B(u) = sum_p max_k [ theta_p(k) - sum_{e: p is later} u_e(k) + sum_{e: p is earlier} max(u_e(k), max_l u_e(l) - c_e) ]

is at least the score of every labelling: an edge adds max(u(k), max_l u(l) - c) - u(l) >= -c [k != l] at labels k, l of its
ends, by the first term if k = l and by the second if not. So `bound`, one loop over the edges, is right even where message
passing is not, or has not converged. On trees both agree once it has.

Numbers are stored in rows of `padded(K)` columns, a multiple of eight (`stages.problems.simd`); those past K hold `NEVER`
in theta, so that they are never the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.problems.simd import (
    WIDTH,
    add,
    broadcast,
    equal_bits,
    larger,
    largest,
    load,
    lowest_bit,
    multiply,
    store,
    subtract,
)

NEVER = -1e100
"""Score of the columns that stand for no label."""

LABELLED = 4
"""One sweep in so many labels the nodes, which takes a quarter of its time; labelling in more of them finds little more."""

IMPROVED = 20
"""Single nodes change their labels after so many sweeps, and after the last."""

MOST_ROUNDS = 20
"""Bound on the rounds of `improve`; two or three are usual."""


@njit(**PLAIN)
def padded(labels):
    """Columns of a row."""
    return (labels + WIDTH - 1) // WIDTH * WIDTH


class Messages(NamedTuple):
    """Workspace for models of up to so many nodes, edges and labels; a row is ``padded(labels)`` columns."""

    theta: np.ndarray
    """scores of the nodes' labels, a row a node; NEVER in the columns past the labels"""
    u: np.ndarray
    """messages, a row an edge"""
    cap: np.ndarray
    """c_e >= 0"""
    rows: np.ndarray
    """three rows"""
    y: np.ndarray
    """uint8, a labelling"""
    unit: np.ndarray
    """the identity matrix, of rows"""


@njit(**JIT)
def workspace(nodes, edges, labels):
    """`Messages` of 0."""
    columns = padded(labels)
    unit = np.zeros(columns * columns)
    for k in range(columns):
        unit[k * columns + k] = 1.0
    return Messages(
        np.zeros(nodes * columns),
        np.zeros(edges * columns),
        np.zeros(edges),
        np.zeros(3 * columns),
        np.zeros(nodes, np.uint8),
        unit,
    )


@njit(**PLAIN)
def value_of(labels, theta, capacity, arc_ptr, head, edge, y):
    """The score of y."""
    columns, total = padded(labels), 0.0
    for p in range(y.size):
        total += theta[p * columns + np.int64(y[p])]
        for a in range(arc_ptr[p], arc_ptr[p + 1]):
            if head[a] > p and y[head[a]] != y[p]:
                total -= capacity[edge[a]]
    return total


@njit(**PLAIN)
def one_pass(forward, label, theta, u, row, cap, arc_ptr, head, edge, y, unit):
    """Visit all nodes in order, or in reverse order.

    Returns the score of the labelling y that this leaves, if it is to `label` the nodes, plus the sum of all c_e; and the
    bound, after a backward pass. One vector holds a row here; `one_pass_wide` does the same for more columns. `row` is
    workspace.
    """
    nodes, score, total = arc_ptr.size - 1, 0.0, 0.0
    for n in range(nodes):
        p = n if forward else nodes - 1 - n
        share, rest, seen_from, seen_to, next_from, next_to = _arcs(forward, p, arc_ptr, head)
        own = load(theta, np.uint64(p * WIDTH))
        wish = own
        for a in range(next_from, next_to):
            wish = add(wish, load(u, np.uint64(edge[a] * WIDTH)))
        b = wish
        for a in range(seen_from, seen_to):
            b = add(b, load(u, np.uint64(edge[a] * WIDTH)))
        part = multiply(broadcast(share), b)
        for a in range(next_from, next_to):
            start = np.uint64(edge[a] * WIDTH)
            t = subtract(part, load(u, start))
            store(u, start, larger(t, broadcast(largest(t) - cap[edge[a]])))
        if label:
            for a in range(seen_from, seen_to):
                vote = load(unit, np.uint64(np.int64(y[head[a]]) * WIDTH))
                vote = multiply(broadcast(cap[edge[a]]), vote)
                own, wish = add(own, vote), add(wish, vote)
            best = lowest_bit(equal_bits(wish, broadcast(largest(wish))))
            y[p] = best
            store(row, np.uint64(0), own)
            score += row[best]
        if not forward and rest > 0.0:
            total += largest(b) * rest
    return score, total


@njit(**PLAIN)
def one_pass_wide(columns, forward, label, theta, u, rows, cap, arc_ptr, head, edge, y, unit):
    """`one_pass` for rows of several vectors."""
    nodes, score, total = arc_ptr.size - 1, 0.0, 0.0
    for n in range(nodes):
        p = n if forward else nodes - 1 - n
        share, rest, seen_from, seen_to, next_from, next_to = _arcs(forward, p, arc_ptr, head)
        highest, wished = broadcast(-np.inf), broadcast(-np.inf)
        for g in range(0, columns, WIDTH):
            own = load(theta, np.uint64(p * columns + g))
            wish = own
            for a in range(next_from, next_to):
                wish = add(wish, load(u, np.uint64(edge[a] * columns + g)))
            b = wish
            for a in range(seen_from, seen_to):
                b = add(b, load(u, np.uint64(edge[a] * columns + g)))
                if label:
                    vote = load(unit, np.uint64(np.int64(y[head[a]]) * columns + g))
                    vote = multiply(broadcast(cap[edge[a]]), vote)
                    own, wish = add(own, vote), add(wish, vote)
            store(rows, np.uint64(g), own)
            store(rows, np.uint64(columns + g), multiply(broadcast(share), b))
            store(rows, np.uint64(2 * columns + g), wish)
            highest, wished = larger(b, highest), larger(wish, wished)
        for a in range(next_from, next_to):
            start, peak = edge[a] * columns, broadcast(-np.inf)
            for g in range(0, columns, WIDTH):
                t = subtract(load(rows, np.uint64(columns + g)), load(u, np.uint64(start + g)))
                store(u, np.uint64(start + g), t)
                peak = larger(t, peak)
            least = broadcast(largest(peak) - cap[edge[a]])
            for g in range(0, columns, WIDTH):
                store(u, np.uint64(start + g), larger(load(u, np.uint64(start + g)), least))
        if label:
            best = _place_of(largest(wished), columns, 2 * columns, rows)
            y[p] = best
            score += rows[best]
        if not forward and rest > 0.0:
            total += largest(highest) * rest
    return score, total


@inner(**PLAIN)
def _arcs(forward, p, arc_ptr, head):
    """What a visit of node p needs: the part of b that an edge gets; what is left if every earlier node gets one; the first
    arc to nodes that this pass has visited, and the end of them; the same of nodes still to visit."""
    first, last = arc_ptr[p], arc_ptr[p + 1]
    middle = first
    while middle < last and head[middle] < p:
        middle += 1
    share = 1.0 / max(middle - first, last - middle, 1)
    rest = 1.0 - (middle - first) * share
    if forward:
        return share, rest, first, middle, middle, last
    return share, rest, middle, last, first, middle


@njit(**PLAIN)
def _place_of(value, columns, start, rows):
    """The first column of the row at `start` that holds `value`; 0 if no column does."""
    for g in range(0, columns, WIDTH):
        bits = equal_bits(load(rows, np.uint64(start + g)), broadcast(value))
        if bits != 0:
            return g + np.int64(lowest_bit(bits))
    return 0


@njit(**PLAIN)
def maximise(labels, sweeps, slack, known, theta, u, rows, cap, arc_ptr, head, edge, y, best, unit):
    """(score, bound) after so many sweeps from messages of 0; ends once their difference is at most `slack`.

    Parameters
    ----------
    known : float
        The score of the labelling that comes in `best`; the best one found replaces it.
    arc_ptr, head, edge : int32 arrays
        From `maxflow.adjacency`: the arcs of a node in the order of their heads.
    u : float64 array
        A row of messages for each edge. They leave as `bound` takes them, for the ends that come first.
    cap : float64 array
        c_e >= 0.
    rows, y, unit
        Workspace: three rows, a labelling; the identity matrix of ``padded(labels)`` columns.
    """
    columns, cuts, nodes = padded(labels), 0.0, arc_ptr.size - 1
    for e in range(cap.size):
        cuts += cap[e]
    for j in range(cap.size * columns):
        u[j] = 0.0
    score, most = known, np.inf
    for done in range(1, sweeps + 1):
        label = done % LABELLED == 0 or done == sweeps
        for forward in (True, False):
            if columns == WIDTH:
                total, most = one_pass(forward, label, theta, u, rows, cap, arc_ptr, head, edge, y, unit)
            else:
                total, most = one_pass_wide(columns, forward, label, theta, u, rows, cap, arc_ptr, head, edge, y, unit)
            if label and total - cuts > score:
                score = total - cuts
                for p in range(nodes):
                    best[p] = y[p]
        if most - score > slack and (done % IMPROVED == 0 or done == sweeps):
            score += improve(columns, theta, rows, cap, arc_ptr, head, edge, best, unit)
        if most - score <= slack:
            break
    return score, most


@njit(**PLAIN)
def improve(columns, theta, rows, cap, arc_ptr, head, edge, y, unit):
    """The gain in score as node after node takes its best label, given its neighbours' labels, until no node changes."""
    gain = 0.0
    for _ in range(MOST_ROUNDS):
        changed = False
        for p in range(arc_ptr.size - 1):
            peak = broadcast(-np.inf)
            for g in range(0, columns, WIDTH):
                own = load(theta, np.uint64(p * columns + g))
                for a in range(arc_ptr[p], arc_ptr[p + 1]):
                    vote = load(unit, np.uint64(np.int64(y[head[a]]) * columns + g))
                    own = add(own, multiply(broadcast(cap[edge[a]]), vote))
                store(rows, np.uint64(g), own)
                peak = larger(own, peak)
            most = largest(peak)
            raised = most - rows[np.int64(y[p])]
            if raised > 0.0:
                y[p], changed = _place_of(most, columns, 0, rows), True
                gain += raised
        if not changed:
            break
    return gain


@njit(**PLAIN)
def bound(labels, theta, u, row, capacity, arc_ptr, head, edge):
    """B(u) for any u, a row of ``padded(labels)`` columns for each edge; nan if an entry of u is (theorem 4).

    `capacity` must be >= 0.
    """
    columns, total = padded(labels), 0.0
    for p in range(arc_ptr.size - 1):
        for k in range(labels):
            row[k] = theta[p * columns + k]
        for a in range(arc_ptr[p], arc_ptr[p + 1]):
            start = edge[a] * columns
            if head[a] < p:
                for k in range(labels):
                    row[k] -= u[start + k]
            else:
                most = u[start]
                for k in range(1, labels):
                    most = max(most, u[start + k])
                most -= max(capacity[edge[a]], 0.0)
                for k in range(labels):
                    row[k] += max(u[start + k], most)
        most = row[0]
        for k in range(1, labels):
            most = max(most, row[k])
        total += most
        for k in range(labels):  # max() may drop a nan
            if row[k] != row[k]:
                total = np.nan
    return total
