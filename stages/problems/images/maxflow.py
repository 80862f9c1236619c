"""Minimum s-t cut with float64 capacities, for the small sparse graphs of binary segmentation.

The max-oracle of a pairwise submodular binary model is one minimum cut. The method is push-relabel (Goldberg and
Tarjan, 1988) in rounds like those of Tarjan's wave algorithm (1984), and only its first phase: a cut needs a maximum
preflow, not a flow.

1. Paths source -> p -> q -> sink are saturated in one sweep; in a segmentation graph that is most of the flow.
2. A breadth-first search from the sink gives every node its exact residual distance; then one sweep over the nodes,
   farthest first, pushes each node's excess along arcs that lead one step nearer. This repeats until no excess can reach
   the sink.

The nodes that can reach the sink at the end form the smallest possible sink side: ties go to the source side.

*Termination does not depend on the capacities*, so floats need no tolerance: a push either empties the node or sets the
arc's residual to exactly 0, distances never fall, and a node left with excess after a sweep has lost all its shortest
arcs, so its distance rises before the next one. Rounding moves the value of the cut (by about 1e-16 of the capacities),
never the control flow. Everything is deterministic; nothing is allocated here.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.compiled import inner
from gapwise.stages.problems.protocol import JIT, PLAIN, U


def adjacency(edges: np.ndarray, edge_ptr: np.ndarray, node_ptr: np.ndarray) -> tuple[np.ndarray, ...]:
    """The static part of many graphs at once: compressed rows of arcs, two for each undirected edge.

    Parameters
    ----------
    edges : int array, shape (edge_ptr[-1], 2)
        Ends of every edge, numbered from 0 within their graph; no loops. Parallel edges are allowed.
    edge_ptr, node_ptr : int64 array, shape (n + 1,)
        Graph i has the edges ``edge_ptr[i]:edge_ptr[i + 1]`` and ``node_ptr[i + 1] - node_ptr[i]`` nodes.

    Returns
    -------
    arc_ptr : int32 array, shape (node_ptr[-1] + n,)
        Graph i's row starts are ``arc_ptr[node_ptr[i] + i : node_ptr[i + 1] + i + 1]``, from 0 within the graph.
    head, reverse, edge : int32 array, shape (2 * edge_ptr[-1],)
        For each arc of graph i, starting at ``2 * edge_ptr[i]``: the node it leads to, the reverse arc, its edge.
    """
    n, total = node_ptr.size - 1, int(edge_ptr[-1])
    arc_ptr = np.empty(int(node_ptr[-1]) + n, np.int32)
    head, reverse, edge = (np.empty(2 * total, np.int32) for _ in range(3))
    for i in range(n):
        rows, arcs = slice(node_ptr[i] + i, node_ptr[i + 1] + i + 1), slice(2 * edge_ptr[i], 2 * edge_ptr[i + 1])
        ends = np.asarray(edges[edge_ptr[i] : edge_ptr[i + 1]], np.int64)
        count, tail, to = len(ends), ends.T.reshape(-1), ends[:, ::-1].T.reshape(-1)
        order = np.lexsort((to, tail))
        arc_ptr[rows] = np.append(0, np.cumsum(np.bincount(tail, minlength=int(node_ptr[i + 1] - node_ptr[i]))))
        head[arcs], edge[arcs] = to[order], order % max(count, 1)
        reverse[arcs] = np.roll(np.argsort(order), -count)[order]
    return arc_ptr, head, reverse, edge


@inner(**JIT)
def workspace(nodes, edges):
    """Arrays for `minimum_cut` on graphs of up to `nodes` nodes and `edges` edges."""
    return np.empty(nodes), np.empty(2 * edges), np.empty(nodes, np.int32), np.empty(nodes, np.int32)


@inner(**PLAIN)
def minimum_cut(arc_ptr, head, reverse, edge, capacity, sink_side, work):
    """sink_side[p] <- 1 for nodes on the sink's side of the minimum cut with the fewest of them, 0 for the others.

    Parameters
    ----------
    arc_ptr, head, reverse, edge : int32 arrays, shapes (S + 1,) and 3 x (2E,)
        One graph of `adjacency`.
    capacity : float64 array, shape (E,)
        Finite; values <= 0 count as no edge.
    sink_side : uint8 array, shape (S,)
        The result.
    work : tuple
        From `workspace`. On entry ``work[0][:S]`` holds the terminal capacities, which must be finite: v > 0 is an arc of
        capacity v from the source, v < 0 one of capacity -v to the sink. The contents are destroyed.
    """
    nodes = sink_side.size
    excess, residual, distance = work[0], work[1], work[2]
    for a in range(head.size):
        residual[a] = capacity[U(edge[a])]
    alive = 0  # nodes with excess that may still reach the sink
    for p in range(nodes):
        if excess[p] > 0.0:
            for a in range(U(arc_ptr[p]), U(arc_ptr[p + 1])):
                q = U(head[a])
                if excess[q] < 0.0 and residual[a] > 0.0:
                    flow = min(excess[p], residual[a], -excess[q])
                    excess[p] -= flow
                    excess[q] += flow
                    residual[a] -= flow
                    residual[U(reverse[a])] += flow
                    if excess[p] == 0.0:
                        break
            if excess[p] > 0.0:
                alive += 1
    while True:
        reached, wanted = _distances(arc_ptr, head, reverse, nodes, alive, work)
        if wanted == 0:
            break
        alive = _wave(arc_ptr, head, reverse, reached, work)
    for p in range(nodes):
        sink_side[p] = distance[p] > 0


@inner(**PLAIN)
def _distances(arc_ptr, head, reverse, nodes, alive, work):
    """Residual distances to the sink (0: unreached), by breadth-first search until all `alive` nodes with excess are found.

    Returns the number of nodes in the queue, which is in order of distance, and how many of them have excess. If none has,
    the search was exhaustive, and the distances give the sides of the cut.
    """
    excess, residual, distance, queue = work[0], work[1], work[2], work[3]
    first, last, reached = U(0), U(0), 0
    for p in range(nodes):
        if excess[p] < 0.0:
            distance[p] = 1
            queue[last] = p
            last += U(1)
        else:
            distance[p] = 0
    while first < last:
        here = U(queue[first])
        first += U(1)
        for a in range(U(arc_ptr[here]), U(arc_ptr[here + U(1)])):
            q = U(head[a])
            if distance[q] == 0 and residual[U(reverse[a])] > 0.0:
                distance[q] = distance[here] + 1
                queue[last] = q
                last += U(1)
                if excess[q] > 0.0:
                    reached += 1
                    if reached == alive:
                        return last, reached
    return last, reached


@inner(**PLAIN)
def _wave(arc_ptr, head, reverse, reached, work):
    """Push every excess along shortest arcs, farthest nodes first; returns how many nodes of the queue keep some.

    Nodes with excess that the search did not reach are not counted: the set of nodes that can reach the sink only shrinks.
    """
    excess, residual, distance, queue = work[0], work[1], work[2], work[3]
    left, k = 0, reached
    while k > U(0):
        k -= U(1)
        p = U(queue[k])
        x = excess[p]
        if x > 0.0:
            nearer = distance[p] - 1  # 0 if p is next to the sink but its arc there is now full: p waits
            for a in range(U(arc_ptr[p]), U(arc_ptr[p + U(1)] if nearer > 0 else arc_ptr[p])):
                q = U(head[a])
                room = residual[a]
                if distance[q] == nearer and room > 0.0:
                    if x <= room:
                        residual[a] = room - x
                        residual[U(reverse[a])] += x
                        excess[q] += x
                        x = 0.0
                        break
                    residual[a] = 0.0
                    residual[U(reverse[a])] += room
                    excess[q] += room
                    x -= room
            excess[p] = x
            if x > 0.0:
                left += 1
    return left
