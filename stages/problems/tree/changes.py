"""Further labellings of a tree after `maxsum.maximise`: the best one that first departs from the maximiser at each node.

Nodes come after their parents. A labelling that departs first at node v has the maximiser's places and types before v; at v
it has the second best place and types, given the place of its parent, and below v the best ones. These sets divide all
other labellings (Lawler 1972), so the best of these labellings is the second best of all. What a change costs follows from
the tables of subtrees that `maximise` leaves, without another message.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import PLAIN, U
from gapwise.stages.problems.tree.maxsum import best_child, deformation_tables, misplaced
from gapwise.stages.problems.tree.rows import padded

CHANGE = 4
"""Of a change: what it costs, the place, and the two types of the arc."""


@njit(**PLAIN)
def with_one_change(P, i, theta, m, labels, losses, scratch, changes, moved):
    """labels[1:m] <- the labellings with the cheapest first changes of labels[0]; losses <- theirs. Returns how many, with
    the maximiser. changes (V, CHANGE) and moved (V,) are workspace, and scratch is as `maximise` leaves it."""
    best, tables, tops = scratch[0], scratch[4], scratch[6]
    rows, columns, V, T = P.hw[i, 0], P.hw[i, 1], P.parent.size, P.anchors.shape[2]
    stride = padded(columns)
    size, length, y = rows * stride, tables.size // (4 * T), labels[0]
    _second_root(rows, columns, stride, best, np.int64(y[0]), changes)
    for v in range(1, V):
        deformation_tables(P, v - 1, theta, rows, columns, tables, length)
        _second_child(P, i, v, theta, best[v * size : (v + 1) * size], tables, length, stride, y, changes)
    count = 1
    while count < m:
        least = 0
        for v in range(1, V):
            if changes[v, 0] < changes[least, 0]:
                least = v
        if not changes[least, 0] < np.inf:
            break
        changes[least, 0] = np.inf
        z = labels[count]
        for k in range(z.size):
            z[k] = y[k]
        z[least] = int(changes[least, 1])
        if least > 0:
            z[V + 2 * (least - 1)], z[V + 2 * (least - 1) + 1] = int(changes[least, 2]), int(changes[least, 3])
        for v in range(V):
            moved[v] = 1 if v == least and z[v] != y[v] else 0
        for v in range(least + 1, V):
            if moved[P.parent[v]] == 1:
                deformation_tables(P, v - 1, theta, rows, columns, tables, length)
                best_child(P, i, v, theta, best[v * size : (v + 1) * size], tables, length, stride, z, tops)
                moved[v] = 1 if z[v] != y[v] else 0
        losses[count] = 0.0
        for v in range(V):
            losses[count] += misplaced(P, i, v, np.int64(z[v]))
        count += 1
    return count


@njit(**PLAIN)
def _second_root(rows, columns, stride, best, best_root, changes):
    """changes[0] <- the second best place of the root."""
    top, second = best[(best_root // columns) * stride + best_root % columns], -np.inf
    for r in range(rows):
        for c in range(columns):
            if best[r * stride + c] > second and r * columns + c != best_root:
                second, changes[0, 1] = best[r * stride + c], r * columns + c
    changes[0, 0] = top - second


@njit(**PLAIN)
def _second_child(P, i, v, theta, below, tables, length, stride, y, changes):
    """changes[v] <- the second best place of node v and types of its arc at the place of its parent, in y."""
    rows, columns, T, V, arc = P.hw[i, 0], P.hw[i, 1], P.anchors.shape[2], P.parent.size, v - 1
    here, cell_of_y = np.int64(y[P.parent[v]]), np.int64(y[v])
    first_of_y, second_of_y = np.int64(y[V + 2 * arc]), np.int64(y[V + 2 * arc + 1])
    r, s, weights = here // columns, here % columns, P.d - 2 * (V - 1) + 2 * arc
    own, theirs = (
        P.relations_ptr[i] + 2 * arc * T * rows * columns,
        P.relations_ptr[i] + (2 * arc + 1) * T * rows * columns,
    )
    scale, scale_theirs = theta[weights] * P.relation_scale, theta[weights + 1] * P.relation_scale
    top, second = -np.inf, -np.inf
    for a in range(rows):
        for b in range(columns):
            base, cell = below[a * stride + b], a * columns + b
            kr, kc = a - r + rows - 1, length + columns - 1 + s - b
            t_best, t_next, t_at, t_then, u_best, u_next, u_at, u_then = -np.inf, -np.inf, 0, 0, -np.inf, -np.inf, 0, 0
            for k in range(T):
                o, q = 2 * k * length, 2 * (T + k) * length
                x = tables[o + kr] + tables[o + kc] + scale * P.relations[U(own + k * rows * columns + here)]
                if x > t_best:
                    t_next, t_then, t_best, t_at = t_best, t_at, x, k
                elif x > t_next:
                    t_next, t_then = x, k
                x = tables[q + kr] + tables[q + kc] + scale_theirs * P.relations[U(theirs + k * rows * columns + cell)]
                if x > u_best:
                    u_next, u_then, u_best, u_at = u_best, u_at, x, k
                elif x > u_next:
                    u_next, u_then = x, k
            value, t, u = base + t_best + u_best, t_at, u_at
            if cell == cell_of_y and t == first_of_y and u == second_of_y:
                top = value
                if t_best - t_next <= u_best - u_next:
                    value, t = base + t_next + u_best, t_then
                else:
                    value, u = base + t_best + u_next, u_then
            if value > second:
                second, changes[v, 1], changes[v, 2], changes[v, 3] = value, cell, t, u
    changes[v, 0] = top - second
