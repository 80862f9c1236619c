"""Max-sum on a tree whose nodes have places on a grid: generalised distance transforms, exact for any weights.

The message of an arc from its child c (at row a, column b) to its parent p (at row r, column s) is, over 13 x 13 types, say,

    M(r, s) = max_t [ phi_t(r, s) + max_u max_(a, b) ( G_u(a, b) + rows_tu(a - r) + columns_tu(b - s) ) ]

with G_u the best score of the child's subtree plus the child's relation map of type u, phi_t the parent's relation map, and
rows_tu, columns_tu the deformation scores of the two types together, which depend on the displacement alone. The maximum
over a and b is taken one axis after the other (Felzenszwalb and Huttenlocher, *Distance Transforms of Sampled Functions*,
2012), by trying every displacement for eight columns at a time. That needs no sign of a weight, and is faster than lower
envelopes at these sizes.

Most of it need not be done (`messages`). Grids are stored row by row, with rows padded to a multiple of eight by -inf.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import JIT, PLAIN, U
from gapwise.stages.problems.tree.messages import message_of
from gapwise.stages.problems.tree.rows import LOWEST, padded


@njit(**JIT)
def workspace(nodes, types, most_rows, most_columns):
    """Arrays for `maximise`, for grids of at most this size."""
    stride = padded(most_columns)
    size, high, wide = most_rows * stride, padded(most_rows), padded(stride // 8)
    tables = 2 * max(high, stride) + 8
    return (
        np.empty(nodes * size),  # best score of each node's subtree at each place
        np.empty(size),  # the message
        np.empty(types * size),  # G_u
        np.empty(types * size),  # phi_t, parent's relation maps
        np.empty(4 * types * tables),  # deformation scores: rows and columns, of either end
        np.zeros(4 * tables + stride + 8),  # of one pair of types: `messages._pair`
        np.empty(types * high + 2 * types),  # largest G_u by row, and of all rows; largest phi_t
        np.empty(types * types),  # bounds of pairs of types
        np.empty(types * types, np.int64),  # their order
        np.empty(types * high * wide),  # room below the message, by type, row and eight columns
        np.empty((types + 1) * high, np.int64),  # after how many pairs rooms were computed; and rows of M last rose
    )


@njit(**PLAIN)
def maximise(P, i, theta, augmented, y, scratch):
    """y <- argmax of <theta, m_i(y)>, plus the loss if `augmented`; returns the loss of y, 0 without it."""
    best, message, child, parent, tables, pair, tops, bounds, order, rooms, ages = scratch
    rows, columns, V, T = P.hw[i, 0], P.hw[i, 1], P.parent.size, P.anchors.shape[2]
    stride = padded(columns)
    size, length = rows * stride, tables.size // (4 * T)
    for v in range(V):
        _subtree_alone(P, i, v, theta[v] * P.per_unary, augmented, best[v * size : (v + 1) * size])
    for v in range(V - 1, 0, -1):  # children come after their parents
        p = P.parent[v]
        _deformation_tables(P, v - 1, theta, rows, columns, tables, length)
        _relations(P, i, v - 1, theta, best[v * size : (v + 1) * size], child, parent, stride)
        message_of(rows, columns, T, message, child, parent, tables, pair, tops, bounds, order, rooms, ages)
        for k in range(size):
            best[p * size + k] += message[k]
    position, top = 0, -np.inf
    for r in range(rows):
        for c in range(columns):
            if best[r * stride + c] > top:
                position, top = r * columns + c, best[r * stride + c]
    y[0] = position
    for v in range(1, V):
        _deformation_tables(P, v - 1, theta, rows, columns, tables, length)
        _best_child(P, i, v, theta, best[v * size : (v + 1) * size], tables, length, stride, y, tops)
    loss = 0.0
    if augmented:
        for v in range(V):
            loss += misplaced(P, i, v, np.int64(y[v]))
    return loss


@njit(**PLAIN)
def misplaced(P, i, v, position):
    """The loss of node v at this place: its weight times min(1, squared distance from the truth / s^2)."""
    columns = P.hw[i, 1]
    true = np.int64(P.truth[P.label_ptr[i] + v])
    dy, dx = position // columns - true // columns, position % columns - true % columns
    return P.node_loss[v] * min(1.0, (dy * dy + dx * dx) / P.scale2[i])


@njit(**PLAIN)
def _subtree_alone(P, i, v, weight, augmented, out):
    """out <- unary scores of node v, with its loss if `augmented`."""
    rows, columns = P.hw[i, 0], P.hw[i, 1]
    stride, start = padded(columns), P.unary_ptr[i] + v * rows * columns
    true = np.int64(P.truth[P.label_ptr[i] + v])
    share = P.node_loss[v] if augmented else 0.0
    for r in range(rows):
        dy2 = (r - true // columns) ** 2
        for c in range(columns):
            x = weight * P.unary[U(start + r * columns + c)]
            if share > 0.0:
                x += share * min(1.0, (dy2 + (c - true % columns) ** 2) / P.scale2[i])
            out[r * stride + c] = x
        for c in range(columns, stride):
            out[r * stride + c] = -np.inf


@njit(**PLAIN)
def _deformation_tables(P, arc, theta, rows, columns, tables, length):
    """Deformation scores of an arc's types, of both of its ends, by displacement.

    With `start` for a type, tables[start + k] is the score of k - (rows - 1) rows from the parent to the child, and
    tables[start + length + k] that of (columns - 1) - k columns: in this order the columns of the parent ascend.
    """
    T = P.anchors.shape[2]
    for side in range(2):
        sign = 1.0 - 2.0 * side  # types of the child see the displacement of the parent
        for t in range(T):
            o, start = P.parent.size + ((arc * 2 + side) * T + t) * 4, 2 * (side * T + t) * length
            anchor = P.anchors[arc, side, t]
            for k in range(length):
                dx = (sign * ((columns - 1) - k) - anchor[0]) * P.per_cell
                dy = (sign * (k - (rows - 1)) - anchor[1]) * P.per_cell
                x, y = P.per_square * (dx * dx), P.per_square * (dy * dy)
                tables[start + k] = theta[o + 2] * dy - theta[o + 3] * y if k < 2 * rows - 1 else LOWEST
                tables[start + length + k] = theta[o] * dx - theta[o + 1] * x if k < 2 * columns - 1 else LOWEST


@njit(**PLAIN)
def _relations(P, i, arc, theta, below, child, parent, stride):
    """child <- G_u, with the scores `below` of the child's subtree; parent <- phi_t."""
    rows, columns, T = P.hw[i, 0], P.hw[i, 1], P.anchors.shape[2]
    weights = P.d - 2 * (P.parent.size - 1) + 2 * arc
    for side in range(2):
        start = P.relations_ptr[i] + (2 * arc + side) * T * rows * columns
        scale, out = theta[weights + side] * P.relation_scale, child if side == 1 else parent
        for t in range(T):
            for r in range(rows):
                o, first = (t * rows + r) * stride, start + (t * rows + r) * columns
                for c in range(columns):
                    x = scale * P.relations[U(first + c)]
                    out[U(o + c)] = below[U(r * stride + c)] + x if side == 1 else x
                for c in range(columns, stride):
                    out[o + c] = LOWEST


@njit(**PLAIN)
def _best_child(P, i, v, theta, below, tables, length, stride, y, work):
    """y <- the place of node v and the types of its arc that are best at the place of its parent, in y."""
    rows, columns, T, V, arc = P.hw[i, 0], P.hw[i, 1], P.anchors.shape[2], P.parent.size, v - 1
    here = np.int64(y[P.parent[v]])
    r, s = here // columns, here % columns
    weights = P.d - 2 * (V - 1) + 2 * arc
    own, theirs = (
        P.relations_ptr[i] + 2 * arc * T * rows * columns,
        P.relations_ptr[i] + (2 * arc + 1) * T * rows * columns,
    )
    scale, scale_theirs = theta[weights] * P.relation_scale, theta[weights + 1] * P.relation_scale
    most = -np.inf  # of the deformation scores and relation maps of the two types
    for t in range(T):
        work[t] = scale * P.relations[U(own + t * rows * columns + here)]
        top = -np.inf
        for a in range(rows):
            top = max(top, tables[2 * t * length + rows - 1 - r + a])
        wide = -np.inf
        for b in range(columns):
            wide = max(wide, tables[2 * t * length + length + columns - 1 + s - b])
        most = max(most, work[t] + top + wide)
    top, best_cell, first, second = -np.inf, 0, 0, 0
    for a in range(rows):
        for b in range(columns):
            base, cell = below[a * stride + b], a * columns + b
            t_best, t_of_best = -np.inf, 0
            kr, kc = a - r + rows - 1, length + columns - 1 + s - b
            u_best, u_of_best = -np.inf, 0
            for u in range(T):
                o = 2 * (T + u) * length
                x = tables[o + kr] + tables[o + kc] + scale_theirs * P.relations[U(theirs + u * rows * columns + cell)]
                if x > u_best:
                    u_best, u_of_best = x, u
            if base + u_best + most < top:
                continue
            for t in range(T):
                o = 2 * t * length
                x = tables[o + kr] + tables[o + kc] + work[t]
                if x > t_best:
                    t_best, t_of_best = x, t
            if base + t_best + u_best > top:
                top, best_cell, first, second = base + t_best + u_best, cell, t_of_best, u_of_best
    y[v] = best_cell
    y[V + 2 * arc] = first
    y[V + 2 * arc + 1] = second
