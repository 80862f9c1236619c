"""Labels that occur in no labelling better than a given one, and the smaller graph without them.

A message u_e points at one end p of its edge e. It adds M_e(k) = max(u_e(k), max_l u_e(l) - c_e) to label k of p and -u_e(l)
to label l of the other end, and M_e(k) - u_e(l) >= -c_e [k != l] for any numbers u_e and either end (`trws`). So with b_p(k)
for theta_p(k) and all that messages add to it,

    b_p(k) + sum_{q != p} max_l b_q(l)

is at least the score of every labelling that has y_p = k. If it is less than the score of a labelling at hand, no better one
has label k at p. It says most where all messages of p point at p. So `exclude` takes the nodes in order and turns the
messages from each to later nodes round, with the numbers that message passing would send; b changes with them.

Label k' *dominates* k at p if theta_p(k') - theta_p(k) >= sum_e c_e over the edges of p: no labelling loses by k' in place
of k. `exclude` also drops what the label of the largest theta_p dominates. A node without edges keeps one label.

So a best labelling is always left: take one and replace its dominated labels. It stays a best one, and none of its labels
has a bound below the score at hand. This holds for any messages.

`reduce` makes the graph of what is left. A node with one label is closed: its score goes into a constant, and what it costs
its neighbours to differ into their theta. The other nodes keep their order; the labels that they may have get new numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from gapwise.stages.problems.potts.trws import NEVER, padded
from gapwise.stages.problems.protocol import JIT, PLAIN
from gapwise.stages.problems.simd import WIDTH, add, broadcast, larger, largest, load, multiply, store, subtract

ROUNDING = 1e-13
"""Share of the sum of all magnitudes by which a bound must stay below the score at hand before it counts."""


class Graph(NamedTuple):
    """A Potts model of up to so many nodes, edges and labels; arrays may be longer than it needs."""

    size: np.ndarray
    """int64, (3,): nodes, edges, labels"""
    theta: np.ndarray
    """scores of the nodes' labels in rows of ``padded(labels)`` columns; NEVER where a node cannot have the label"""
    u: np.ndarray
    """messages, a row an edge"""
    cap: np.ndarray
    """c_e >= 0"""
    arc_ptr: np.ndarray
    """int32, as are the next five; this and the next three are `maxflow.adjacency`"""
    head: np.ndarray
    reverse: np.ndarray
    edge: np.ndarray
    node: np.ndarray
    """the node of the larger graph that each node is"""
    label: np.ndarray
    """the label of the larger graph that each label is"""
    best: np.ndarray
    """uint8: the best labelling found"""
    unit: np.ndarray
    """the identity matrix of ``padded(labels)`` columns"""
    score: np.ndarray
    """float64, (2,): what all labellings have besides; the score of a labelling at hand when this graph was reduced"""


@njit(**JIT)
def empty_graph(nodes, edges, labels):
    """Room for so many nodes, edges and labels."""
    columns = padded(labels)
    return Graph(
        np.zeros(3, np.int64),
        np.zeros(nodes * columns),
        np.zeros(edges * columns),
        np.zeros(edges),
        np.zeros(nodes + 1, np.int32),
        np.zeros(2 * edges, np.int32),
        np.zeros(2 * edges, np.int32),
        np.zeros(2 * edges, np.int32),
        np.zeros(nodes, np.int32),
        np.zeros(columns, np.int32),
        np.zeros(nodes, np.uint8),
        np.zeros(columns * columns),
        np.zeros(2),
    )


@njit(**JIT)
def workspace(nodes, edges, labels):
    """Arrays of `exclude` and `reduce`: messages, node terms, their maxima, what is kept, new numbers."""
    columns = padded(labels)
    return (
        np.zeros(edges * columns),
        np.zeros(nodes * columns),
        np.zeros(nodes),
        np.zeros(nodes * columns, np.uint8),
        np.zeros(nodes, np.int32),
        np.zeros(edges, np.int32),
        np.zeros(2 * edges, np.int32),
        np.zeros(columns, np.int32),
    )


@njit(**PLAIN)
def row_max(rows, start, columns):
    """The largest of a row's numbers; nan is not looked for."""
    peak = load(rows, np.uint64(start))
    for g in range(WIDTH, columns, WIDTH):
        peak = larger(load(rows, np.uint64(start + g)), peak)
    return largest(peak)


@njit(**PLAIN)
def set_unit(unit, columns):
    """unit <- the identity matrix."""
    for j in range(columns * columns):
        unit[j] = 0.0
    for k in range(columns):
        unit[k * columns + k] = 1.0


@njit(**PLAIN)
def exclude(graph, score, room):
    """room[3][p columns + k] <- 0 where node p need not have label k in a labelling better than `score`, else 1.

    ``graph.u`` holds any messages, which point at the ends that come first, and `score` is that of a labelling, without
    ``graph.score[0]``. False if a message is nan or infinite; then nothing is said.
    """
    theta, u, cap, arc_ptr, head, edge = graph.theta, graph.u, graph.cap, graph.arc_ptr, graph.head, graph.edge
    turned, terms, most, remaining = room[0], room[1], room[2], room[3]
    nodes, labels, columns = graph.size[0], graph.size[2], padded(graph.size[2])
    total, magnitude = 0.0, abs(score) + _size(u, graph.size[1] * columns, turned)
    if not magnitude < np.inf:
        return False
    for p in range(nodes):
        row, first, last = p * columns, arc_ptr[p], arc_ptr[p + 1]
        for a in range(first, last):
            if head[a] > p:
                start = edge[a] * columns
                least = broadcast(row_max(u, start, columns) - cap[edge[a]])
                for g in range(0, columns, WIDTH):
                    store(turned, np.uint64(start + g), larger(load(u, np.uint64(start + g)), least))
        for g in range(0, columns, WIDTH):
            own = load(theta, np.uint64(row + g))
            for a in range(first, last):
                if head[a] > p:
                    own = add(own, load(turned, np.uint64(edge[a] * columns + g)))
                else:
                    own = subtract(own, load(u, np.uint64(edge[a] * columns + g)))
            store(terms, np.uint64(row + g), own)
        most[p] = row_max(terms, row, columns)
        total += most[p]
        magnitude += abs(most[p])
    for p in range(nodes):
        row, first, last = p * columns, arc_ptr[p], arc_ptr[p + 1]
        middle, costs = first, 0.0
        for a in range(first, last):
            costs += cap[edge[a]]
            if head[a] < p:
                middle += 1
        needed = score - ROUNDING * magnitude - (total - most[p])
        _keep(labels, row, theta, terms, row_max(theta, row, columns), needed, costs, remaining)
        share = 1.0 / max(middle - first, last - middle, 1)
        for a in range(middle, last):
            q, start = head[a], edge[a] * columns
            peak = broadcast(-np.inf)
            for g in range(0, columns, WIDTH):
                sent = multiply(broadcast(share), load(terms, np.uint64(row + g)))
                sent = subtract(sent, load(turned, np.uint64(start + g)))
                store(turned, np.uint64(start + g), sent)
                peak = larger(sent, peak)
            least, peak = broadcast(largest(peak) - cap[edge[a]]), broadcast(-np.inf)
            for g in range(0, columns, WIDTH):
                sent = larger(load(turned, np.uint64(start + g)), least)
                store(turned, np.uint64(start + g), sent)
                own = add(load(terms, np.uint64(q * columns + g)), add(load(u, np.uint64(start + g)), sent))
                store(terms, np.uint64(q * columns + g), own)
                peak = larger(own, peak)
            total -= most[q]
            most[q] = largest(peak)
            total += most[q]
        for g in range(0, columns, WIDTH):
            own = load(theta, np.uint64(row + g))
            for a in range(first, middle):
                own = add(own, load(turned, np.uint64(edge[a] * columns + g)))
            for a in range(middle, last):
                own = subtract(own, load(turned, np.uint64(edge[a] * columns + g)))
            store(terms, np.uint64(row + g), own)
        total -= most[p]
        most[p] = row_max(terms, row, columns)
        total += most[p]
    return True


@njit(**PLAIN)
def _size(u, length, room):
    """The sum of the magnitudes of u; not finite unless all are."""
    total, zero = broadcast(0.0), broadcast(0.0)
    for j in range(0, length, WIDTH):
        values = load(u, np.uint64(j))
        total = add(total, larger(values, subtract(zero, values)))
    result = 0.0
    if length > 0:
        store(room, np.uint64(0), total)
        for j in range(WIDTH):
            result += room[j]
    return result


@njit(**PLAIN)
def _keep(labels, row, theta, terms, top, needed, costs, remaining):
    """What `exclude` says of one node, whose best label alone is worth `top`."""
    dominated = top - costs
    for k in range(labels):
        own = theta[row + k]
        remaining[row + k] = np.uint8((own > dominated) | (own >= top)) & np.uint8(not terms[row + k] < needed)
    if costs == 0.0:
        one_best = False
        for k in range(labels):
            if one_best:
                remaining[row + k] = 0
            one_best |= theta[row + k] >= top


@njit(**PLAIN)
def reduce(graph, smaller, room):
    """`smaller` <- the graph of the nodes that keep several labels; its messages stay as they are (`take_over`).

    Nodes that keep one label get it in ``graph.best``.
    """
    remaining, new_node, new_edge, new_arc, new_label = room[3], room[4], room[5], room[6], room[7]
    theta, arc_ptr, head, edge = graph.theta, graph.arc_ptr, graph.head, graph.edge
    nodes, labels, columns = graph.size[0], graph.size[2], padded(graph.size[2])
    opened, used, fixed = 0, 0, graph.score[0]
    for k in range(labels):
        smaller.label[k] = -1
    for p in range(nodes):
        left, only = 0, 0
        for k in range(labels):
            if remaining[p * columns + k] != 0:
                left, only = left + 1, k
        if left == 0:
            for k in range(1, labels):
                if theta[p * columns + k] > theta[p * columns + only]:
                    only = k
        new_node[p] = -1
        if left > 1:
            new_node[p] = opened
            smaller.node[opened] = p
            opened += 1
            for k in range(labels):
                if remaining[p * columns + k] != 0:
                    smaller.label[k] = k
        else:
            graph.best[p] = only
            fixed += theta[p * columns + only]
    for k in range(labels):
        new_label[k] = -1
        if smaller.label[k] >= 0:
            smaller.label[used], new_label[k] = k, used
            used += 1
    fewer, edges, arcs = padded(used), 0, 0
    for j in range(opened):
        p = smaller.node[j]
        for k in range(fewer):
            smaller.theta[j * fewer + k] = NEVER
        for k in range(used):
            if remaining[p * columns + smaller.label[k]] != 0:
                smaller.theta[j * fewer + k] = theta[p * columns + smaller.label[k]]
        costs, smaller.arc_ptr[j] = 0.0, arcs
        for a in range(arc_ptr[p], arc_ptr[p + 1]):
            q, e, c = head[a], edge[a], graph.cap[edge[a]]
            if new_node[q] < 0:
                costs += c
                k = new_label[graph.best[q]]
                if k >= 0:
                    smaller.theta[j * fewer + k] += c
            elif c > 0.0:
                if q > p:
                    new_edge[e] = edges
                    smaller.cap[edges] = c
                    edges += 1
                    smaller.reverse[arcs] = -1
                else:  # the reverse arc has its number
                    back = new_arc[graph.reverse[a]]
                    smaller.reverse[arcs] = back
                    smaller.reverse[back] = arcs
                new_arc[a] = arcs
                smaller.head[arcs] = new_node[q]
                smaller.edge[arcs] = new_edge[e]
                arcs += 1
        for k in range(used):
            smaller.theta[j * fewer + k] -= costs
    smaller.arc_ptr[opened] = arcs
    for p in range(nodes):
        if new_node[p] < 0:
            for a in range(arc_ptr[p], arc_ptr[p + 1]):
                q = head[a]
                if q > p and new_node[q] < 0 and graph.best[p] != graph.best[q]:
                    fixed -= graph.cap[edge[a]]
    smaller.size[0], smaller.size[1], smaller.size[2] = opened, edges, used
    smaller.score[0] = fixed
    set_unit(smaller.unit, fewer)


@njit(**PLAIN)
def take_over(graph, smaller, room):
    """Messages and labelling of `smaller` as far as `graph`, which `reduce` made it from, has them."""
    columns, fewer = padded(graph.size[2]), padded(smaller.size[2])
    new_node, new_edge = room[4], room[5]
    for j in range(smaller.size[1] * fewer):
        smaller.u[j] = 0.0
    for j in range(smaller.size[0]):
        p = smaller.node[j]
        smaller.best[j] = 0
        for k in range(smaller.size[2]):
            if smaller.theta[j * fewer + k] > smaller.theta[j * fewer + np.int64(smaller.best[j])]:
                smaller.best[j] = k
        for k in range(smaller.size[2]):
            if smaller.label[k] == graph.best[p] and smaller.theta[j * fewer + k] > 0.5 * NEVER:
                smaller.best[j] = k
        for a in range(graph.arc_ptr[p], graph.arc_ptr[p + 1]):
            e = graph.edge[a]
            if graph.head[a] > p and new_node[graph.head[a]] >= 0 and graph.cap[e] > 0.0:
                for k in range(smaller.size[2]):
                    smaller.u[new_edge[e] * fewer + k] = graph.u[e * columns + smaller.label[k]]


@njit(**PLAIN)
def give_back(graph, smaller):
    """graph.best <- the labelling of `smaller`, where that has nodes."""
    for j in range(smaller.size[0]):
        graph.best[smaller.node[j]] = smaller.label[np.int64(smaller.best[j])]
