"""Sequential tree-reweighted message passing for Potts models: a labelling, and a bound that no labelling exceeds.

The score of a labelling y of S nodes is sum_p theta_p(y_p) - sum_e c_e [y_p != y_q] with c_e >= 0. Kolmogorov (PAMI 2006)
moves parts of it between nodes and edges, which changes no labelling's score, until the sum of the separate maxima is small.
In the form used here, phi_{e,p} in R^K is what edge e = (p, q) has taken over from its end p. A visit of node p computes

    M_e(k) = max(phi_{e,q}(k), max_l phi_{e,q}(l) - c_e),    b = theta_p + sum_e M_e,
    phi_{e,p} <- b / max(edges before, edges after) - M_e    on edges to nodes that this pass has still to visit,
    phi_{e,p} <- -M_e                                        on the others,

and labels p on the way: y_p maximises theta_p(k) - sum_{visited q} c_e [k != y_q] + sum_{others} M_e(k). One sweep visits
the nodes in order and then in reverse order.

*Bound.* Let u_e = phi_{e,q} at the end q of e that comes later. For **any** numbers u_e(k), whatever made them,

    B(u) = sum_p max_k [ theta_p(k) - sum_{e: p is later} u_e(k) + sum_{e: p is earlier} max(u_e(k), max_l u_e(l) - c_e) ]

is at least the score of every labelling: an edge adds max(u(k), max_l u(l) - c) - u(l) >= -c [k != l] at labels k, l of its
ends, by the first term if k = l and by the second if not. So `bound`, one loop over the edges, is right even where message
passing is not, or has not converged. On trees both agree after one sweep.

Numbers are stored in rows of `padded(K)` columns, a multiple of eight (`stages.problems.simd`); those past K hold `NEVER`
in theta, so that they are never the largest.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from stages.problems.protocol import JIT, PLAIN
from stages.problems.simd import WIDTH, add, broadcast, larger, largest, load, multiply, store

NEVER = -1e100
"""Score of the columns that stand for no label."""


@njit(**PLAIN)
def padded(labels):
    """Columns of a row."""
    return (labels + WIDTH - 1) // WIDTH * WIDTH


@njit(**JIT)
def workspace(nodes, edges, labels):
    """Arrays for graphs of up to `nodes` nodes and `edges` edges: theta, phi, two rows, and two labellings."""
    columns = padded(labels)
    return (
        np.zeros(nodes * columns),
        np.zeros(2 * edges * columns),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(nodes, np.uint8),
        np.zeros(nodes, np.uint8),
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
def gather(p, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y):
    """First half of a visit: M_e into phi_{e,p} for the edges of p, b into `row`, what p's label maximises into `choice`.

    One vector holds a row here. `gather_wide` does the same for more columns.
    """
    b = load(theta, np.uint64(p * WIDTH))
    wish = b
    for a in range(arc_ptr[p], arc_ptr[p + 1]):
        u = load(phi, np.uint64(reverse[a] * WIDTH))
        message = larger(u, broadcast(largest(u) - max(capacity[edge[a]], 0.0)))
        store(phi, np.uint64(a * WIDTH), message)
        b = add(b, message)
        if (head[a] < p) != forward:
            wish = add(wish, message)
    store(row, np.uint64(0), b)
    store(choice, np.uint64(0), wish)
    for a in range(arc_ptr[p], arc_ptr[p + 1]):
        if (head[a] < p) == forward:
            choice[y[head[a]]] += max(capacity[edge[a]], 0.0)


@njit(**PLAIN)
def gather_wide(columns, p, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y):
    """`gather` for rows of several vectors."""
    for g in range(0, columns, WIDTH):
        own = load(theta, np.uint64(p * columns + g))
        store(row, np.uint64(g), own)
        store(choice, np.uint64(g), own)
    for a in range(arc_ptr[p], arc_ptr[p + 1]):
        c, other = max(capacity[edge[a]], 0.0), reverse[a] * columns
        most = load(phi, np.uint64(other))
        for g in range(WIDTH, columns, WIDTH):
            most = larger(most, load(phi, np.uint64(other + g)))
        least = broadcast(largest(most) - c)
        visited = (head[a] < p) == forward
        for g in range(0, columns, WIDTH):
            message = larger(load(phi, np.uint64(other + g)), least)
            store(phi, np.uint64(a * columns + g), message)
            store(row, np.uint64(g), add(load(row, np.uint64(g)), message))
            if not visited:
                store(choice, np.uint64(g), add(load(choice, np.uint64(g)), message))
        if visited:
            choice[y[head[a]]] += c


@njit(**PLAIN)
def scatter(columns, p, forward, share, phi, row, arc_ptr, head):
    """Second half: phi_{e,p} <- b share - M_e on edges that are still to be visited, -M_e on the others."""
    minus = broadcast(-1.0)
    for a in range(arc_ptr[p], arc_ptr[p + 1]):
        part = broadcast(0.0 if (head[a] < p) == forward else share)
        for g in range(0, columns, WIDTH):
            message = load(phi, np.uint64(a * columns + g))
            store(
                phi, np.uint64(a * columns + g), add(multiply(minus, message), multiply(part, load(row, np.uint64(g))))
            )


@njit(**PLAIN)
def one_pass(labels, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y):
    """Visit all nodes in order, or in reverse order: (score of the labelling y that this leaves, sum of the terms of the
    bound, which is the bound after a backward pass). `row` and `choice`, (padded(labels),) each, are workspace."""
    columns, nodes = padded(labels), arc_ptr.size - 1
    score, total = 0.0, 0.0
    for n in range(nodes):
        p = n if forward else nodes - 1 - n
        if columns == WIDTH:
            gather(p, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y)
        else:
            gather_wide(columns, p, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y)
        best, most = 0, row[0]
        for k in range(1, labels):
            most = max(most, row[k])
            if choice[k] > choice[best]:
                best = k
        y[p] = best
        score += theta[p * columns + best]
        before = 0
        for a in range(arc_ptr[p], arc_ptr[p + 1]):
            before += head[a] < p
            if (head[a] < p) == forward and y[head[a]] != best:
                score -= capacity[edge[a]]
        after = arc_ptr[p + 1] - arc_ptr[p] - before
        share = 1.0 / max(before, after, 1)
        scatter(columns, p, forward, share, phi, row, arc_ptr, head)
        total += most * (1.0 - (after if forward else before) * share)
    return score, total


@njit(**PLAIN)
def maximise(labels, sweeps, slack, known, capacity, arc_ptr, head, reverse, edge, work):
    """(score, bound) after up to `sweeps` sweeps; ends once their difference is at most `slack`.

    Parameters
    ----------
    known : float
        The score of the labelling that comes in ``work[5]``; the best one found replaces it.
    work : tuple
        From `workspace`; ``work[0]`` holds theta. ``work[1]`` leaves with the messages that `bound` takes.
    """
    theta, phi, row, choice, y, best = work
    nodes = arc_ptr.size - 1
    for j in range(head.size * padded(labels)):
        phi[j] = 0.0
    score, most = known, np.inf
    for _ in range(sweeps):
        for forward in (True, False):
            value, most = one_pass(labels, forward, theta, phi, row, choice, capacity, arc_ptr, head, reverse, edge, y)
            if value > score:
                score = value
                for p in range(nodes):
                    best[p] = y[p]
        if most - score <= slack:
            break
    return score, most


@njit(**PLAIN)
def bound(labels, theta, phi, row, capacity, arc_ptr, head, reverse, edge):
    """B(u) for the u in `phi` (as many rows of ``padded(labels)`` as there are arcs), whatever they are; nan if one is.

    `capacity` must be >= 0.
    """
    columns, total = padded(labels), 0.0
    for p in range(arc_ptr.size - 1):
        for k in range(labels):
            row[k] = theta[p * columns + k]
        for a in range(arc_ptr[p], arc_ptr[p + 1]):
            if head[a] < p:
                for k in range(labels):
                    row[k] -= phi[a * columns + k]
            else:
                other = reverse[a] * columns
                most = phi[other]
                for k in range(1, labels):
                    most = max(most, phi[other + k])
                most -= max(capacity[edge[a]], 0.0)
                for k in range(labels):
                    row[k] += max(phi[other + k], most)
        most = row[0]
        for k in range(1, labels):
            most = max(most, row[k])
        total += most
        for k in range(labels):  # max() may drop a nan
            if row[k] != row[k]:
                total = np.nan
    return total
