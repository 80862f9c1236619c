"""The best matching with null, one or two links a word, by shortest augmenting paths (Jonker and Volgenant 1987).

Rows are the words of one sentence, columns those of the other. A set of candidate links (edges) is wanted with the largest
sum of gains, at most `fertility` links at each word, where a word's second link costs `second` >= 0. As a flow of least
cost: row j sends `fertility` units, each along an edge (capacity 1, cost -gain) to a column and from there to the sink, at
no cost or, as the second unit of its column, at the column's `second`; or straight to the sink, which means null: the
first such unit earns the row's `second` if two links are allowed, as its second link is then not made. All these costs
are convex, so units may be added one by one, each along a shortest path in the residual graph, and the flow is of
least cost after each of them.

Paths are found by Dijkstra's algorithm on reduced costs. With potentials u of rows and v of columns that of edge (j, k) is
cost - u_j - v_k, >= 0 where the edge is unused and <= 0 where it is used (0 if one link is allowed). Every node is scanned
at most once a path, so the method ends whatever rounding does, after at most fertility * rows paths. Edges without a
positive gain are never in the result, and are left out at the start: near the optimum of training most are.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.protocol import JIT, PLAIN

MOST = 2
"""Links of a word at most."""


@njit(**JIT)
def workspace(rows, columns, edges):
    """Arrays for `best_matching` of problems of these sizes at most: gains (edges,), potentials, and whole numbers."""
    nodes = rows + columns
    return (
        np.empty(edges),  # gain of every candidate
        np.empty(edges),  # cost of the kept ones
        np.empty(nodes),  # potentials: u of rows, then v of columns
        np.empty(nodes),  # what the second link of a node costs
        np.empty(nodes),  # distance
        np.empty(nodes, np.int64),  # the edge by which a node was reached
        np.empty(nodes, np.int64),  # 1 where a node has been scanned
        np.empty(nodes, np.int64),  # units: of a row those sent to null, of a column its links
        np.empty(rows + 1, np.int64),  # first kept edge of each row
        np.empty(edges, np.int64),  # column of a kept edge
        np.empty(edges, np.int64),  # row of a kept edge
        np.empty(edges, np.int64),  # rank of a kept edge among the candidates of its row, from 0
        np.empty(edges, np.int64),  # 1 where a kept edge is used
        np.empty(MOST * columns, np.int64),  # the used edges of each column
    )


@njit(**PLAIN)
def _keep(begin, word, rows, column, work):
    """Lists the edges with a positive gain, row by row. ValueError if a gain is not finite."""
    gain, cost, start, to, row, rank, used = work[0], work[1], work[8], work[9], work[10], work[11], work[12]
    first, count, total = begin[word], 0, 0.0
    for j in range(rows):
        start[j] = count
        for e in range(begin[word + j], begin[word + j + 1]):
            value = gain[e - first]
            total += abs(value)
            if value > 0.0:
                cost[count] = -value
                to[count] = column[e]
                row[count] = j
                rank[count] = e - begin[word + j]
                used[count] = 0
                count += 1
    start[rows] = count
    if not total < np.inf:
        raise ValueError("matching: a score is not finite; look for nan or infinity in the weights")


@njit(**PLAIN)
def _null(fertility, units, second):
    """Cost of the next unit that a row sends to null."""
    return -second if fertility == MOST and units == 0 else 0.0


@njit(**PLAIN)
def _add_unit(r, rows, columns, fertility, work):
    """Sends one more unit from row r, along a shortest path."""
    cost, potential, second, distance = work[1], work[2], work[3], work[4]
    by, scanned, units, start, to, row = work[5], work[6], work[7], work[8], work[9], work[10]
    used, links = work[12], work[13]
    nodes = rows + columns
    for x in range(nodes):
        distance[x] = np.inf
        scanned[x] = 0
    distance[r] = 0.0
    end, least = -1, np.inf
    while True:
        x, d = -1, least
        for z in range(nodes):
            if scanned[z] == 0 and distance[z] < d:
                x, d = z, distance[z]
        if x < 0:
            break
        scanned[x] = 1
        if x < rows:
            way = d + _null(fertility, units[x], second[x]) - potential[x]
            if way < least:
                end, least = x, way
            for e in range(start[x], start[x + 1]):
                k = rows + to[e]
                if used[e] == 0 and scanned[k] == 0:
                    way = d + cost[e] - potential[x] - potential[k]
                    if way < distance[k]:
                        distance[k] = way
                        by[k] = e
        else:
            if units[x] < fertility:
                way = d + potential[x] + (second[x] if units[x] == 1 else 0.0)
                if way < least:
                    end, least = x, way
            for s in range(MOST * (x - rows), MOST * (x - rows) + units[x]):
                e = links[s]
                j = row[e]
                if scanned[j] == 0:
                    way = d - (cost[e] - potential[j] - potential[x])
                    if way < distance[j]:
                        distance[j] = way
                        by[j] = e
    for x in range(nodes):
        if scanned[x] == 1 and distance[x] < least:
            potential[x] += least - distance[x] if x < rows else distance[x] - least
    _send(r, end, rows, by, row, to, used, links, units)


@njit(**PLAIN)
def _send(r, end, rows, by, row, to, used, links, units):
    """Moves a unit along the path from row r that ends at the row (for null) or column `end`."""
    slot, x = -1, end
    if end < rows:
        units[end] += 1
    else:
        slot = MOST * (end - rows) + units[end]
        units[end] += 1
    while True:
        if slot >= 0:  # the path reaches this column by an edge that takes a free place, or that of an edge given up
            e = by[x]
            links[slot] = e
            used[e] = 1
            x = row[e]
        if x == r:
            break
        e = by[x]
        used[e] = 0
        x = rows + to[e]
        slot = MOST * to[e]
        while links[slot] != e:
            slot += 1


@njit(cache=True, **PLAIN)
def best_matching(begin, word, rows, columns, column, fertility, y, work):
    """y <- the best matching by the gains in work[0] and the costs of second links in work[3].

    Parameters
    ----------
    begin : int64 array
        Row j has the candidates begin[word + j]:begin[word + j + 1]; work[0] begins with the first of row 0.
    column : int32 array
        Columns of all candidates.
    y : (rows * fertility,)
        For each row, one more than the ranks of its links among its candidates, rising, then zeros.
    """
    potential, units, start, rank, used = work[2], work[7], work[8], work[11], work[12]
    _keep(begin, word, rows, column, work)
    cost, second, to = work[1], work[3], work[9]
    for x in range(rows + columns):
        potential[x] = 0.0
        units[x] = 0
    for unit in range(fertility):
        for j in range(rows):
            if start[j] == start[j + 1]:
                units[j] += 1
                continue
            if unit == 0:
                least = _null(fertility, 0, second[j])
                for e in range(start[j], start[j + 1]):
                    least = min(least, cost[e] - potential[rows + to[e]])
                potential[j] = least
            _add_unit(j, rows, columns, fertility, work)
    for j in range(rows):
        count = 0
        for e in range(start[j], start[j + 1]):
            if used[e] == 1:
                y[j * fertility + count] = rank[e] + 1
                count += 1
        for s in range(count, fertility):
            y[j * fertility + s] = 0
