"""The best labelling of a Potts model that message passing finds, on smaller and smaller graphs, and the bound for it.

Sweeps (`trws`) go in turns. After each turn single nodes change their labels where that helps, and what is then ruled out
(`shrink`) is left out of the next turn, a third of the nodes or more after sixty sweeps. After the last turn alpha-expansion
(`expansion`) may improve the labelling, on the smallest graph.

`certified_bound` looks only at the messages that turns ended with and at the scores at hand there, and rules out anew. A
best labelling is then left in the smallest graph, whose messages bound the maximum.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gapwise.stages.problems.potts.expansion import expand
from gapwise.stages.problems.potts.shrink import empty_graph, exclude, give_back, reduce, set_unit, take_over
from gapwise.stages.problems.potts.shrink import workspace as shrink_workspace
from gapwise.stages.problems.potts.trws import bound, improve, padded, sweep, value_of
from gapwise.stages.problems.protocol import JIT, PLAIN

TURNS = (20, 60)
"""Sweeps after which a smaller graph takes over."""


@njit(**JIT)
def workspace(nodes, edges, labels):
    """Arrays for models of up to so many nodes, edges and labels: graphs, what `shrink` needs, three rows, a labelling, and
    the number of the graph that was the last."""
    graphs = (
        empty_graph(nodes, edges, labels),
        empty_graph(nodes, edges, labels),
        empty_graph(nodes, edges, labels),
    )
    rows, y, used = np.zeros(3 * padded(labels)), np.zeros(nodes, np.uint8), np.zeros(1, np.int64)
    return graphs, shrink_workspace(nodes, edges, labels), rows, y, used


@njit(**PLAIN)
def start(labels, capacity, arc_ptr, head, reverse, edge, work):
    """The whole graph into the workspace, but for theta."""
    graph = work[0][0]
    graph.size[0], graph.size[1], graph.size[2] = arc_ptr.size - 1, capacity.size, labels
    graph.score[0] = 0.0
    for e in range(capacity.size):
        graph.cap[e] = max(capacity[e], 0.0)
    for p in range(arc_ptr.size):
        graph.arc_ptr[p] = arc_ptr[p]
    for a in range(head.size):
        graph.head[a], graph.reverse[a], graph.edge[a] = head[a], reverse[a], edge[a]
    set_unit(graph.unit, padded(labels))


@njit(**PLAIN)
def maximise(sweeps, slack, cuts, work, cut, moves):
    """A labelling, into ``work[0][0].best``, which holds another one at first and never gets worse.

    Ends after so many `sweeps`, or once the bound exceeds the score by at most `slack`. `cuts`: whether alpha-expansion
    follows the last turn, with the workspaces `cut` and `moves`.
    """
    graphs, room, rows, y, used = work
    for j in range(graphs[0].size[1] * padded(graphs[0].size[2])):
        graphs[0].u[j] = 0.0
    level, done = 0, 0
    while True:
        graph = graphs[level]
        nodes, edges, labels = graph.size[0], graph.size[1], graph.size[2]
        cap, best, arc_ptr = graph.cap[:edges], graph.best[:nodes], graph.arc_ptr[: nodes + 1]
        head, reverse, edge = graph.head[: 2 * edges], graph.reverse[: 2 * edges], graph.edge[: 2 * edges]
        until = min(sweeps, TURNS[level]) if level < len(TURNS) else sweeps
        score = value_of(labels, graph.theta, cap, arc_ptr, head, edge, best)
        score, most = sweep(
            labels, done, until, slack, score, graph.theta, graph.u, rows, cap, arc_ptr, head, edge, y[:nodes], best,
            graph.unit,
        )  # fmt: skip
        done = until
        if most - score > slack:
            score += improve(padded(labels), graph.theta, rows, cap, arc_ptr, head, edge, best, graph.unit)
        if most - score > slack and cuts and done >= sweeps:
            score = expand(
                labels, score, cap, arc_ptr, head, reverse, edge, graph.theta, best, moves[0], cut, moves[2], moves[1]
            )
        graph.score[1] = graph.score[0] + score
        if most - score <= slack or done >= sweeps:
            break
        if not exclude(graph, score, room):
            break
        reduce(graph, graphs[level + 1], room)
        take_over(graph, graphs[level + 1], room)
        level += 1
    used[0] = level
    while level > 0:
        level -= 1
        give_back(graphs[level], graphs[level + 1])


@njit(**PLAIN)
def certified_bound(score, work):
    """At least the score of every labelling, whatever messages `work` holds; nan if they are no numbers to count with.

    Parameters
    ----------
    score : float
        That of any labelling.
    work : tuple
        From `workspace`, after `start`, with theta of the whole graph. What else it holds decides how tight the bound is.
    """
    graphs, room, rows, _, used = work
    level, last = 0, max(0, min(used[0], len(TURNS)))
    while level < last:
        graph = graphs[level]
        hand = score
        if graph.score[1] < score:  # no more than what a labelling has, even if it was tampered with
            hand = graph.score[1]
        if not exclude(graph, hand - graph.score[0], room):
            return np.nan
        reduce(graph, graphs[level + 1], room)
        level += 1
    graph = graphs[level]
    nodes, edges = graph.size[0], graph.size[1]
    rest = bound(
        graph.size[2], graph.theta, graph.u, rows, graph.cap[:edges], graph.arc_ptr[: nodes + 1], graph.head, graph.edge
    )
    graph_bound = graph.score[0] + rest
    return score if graph_bound < score else graph_bound  # what is ruled out is no better than `score`
