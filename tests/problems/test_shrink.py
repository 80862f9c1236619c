"""Smaller graphs of the Potts oracle against brute force: a best labelling is never left out, whatever the messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tiny import potts

from gapwise.stages.problems.potts import search
from gapwise.stages.problems.potts.trws import NEVER, padded

pytestmark = pytest.mark.interpreted


def whole_graph(problem, i, rng, scale=1.0, smoothing=0.5):
    """The workspace with block i's graph, with random scores and messages in its first graph."""
    nodes, edges = (int(np.diff(ptr)[i]) for ptr in (problem.label_ptr, problem.images.edge_ptr))
    work, first = problem.scratch()[0], int(problem.label_ptr[i]) + i
    arcs = slice(2 * int(problem.images.edge_ptr[i]), 2 * int(problem.images.edge_ptr[i + 1]))
    adjacency = (
        problem.images.arc_ptr[first : first + nodes + 1],
        *(a[arcs] for a in (problem.images.head, problem.images.reverse, problem.images.edge)),
    )
    search.start(problem.classes, smoothing * rng.random(edges), *adjacency, work)
    columns = padded(problem.classes)
    theta = np.full((nodes, columns), NEVER)
    theta[:, : problem.classes] = rng.normal(size=(nodes, problem.classes))
    work[0][0].theta[: theta.size] = theta.ravel()
    work[0][0].u[:] = scale * rng.normal(size=work[0][0].u.size)
    return work


def scores(graph):
    """{labelling: score} of all labellings of a graph that may be."""
    nodes, edges, labels = (int(x) for x in graph.size)
    theta = graph.theta[: nodes * padded(labels)].reshape(nodes, padded(labels))
    arcs = [(p, a) for p in range(nodes) for a in range(graph.arc_ptr[p], graph.arc_ptr[p + 1]) if graph.head[a] > p]
    assert len(arcs) == edges
    for p, a in arcs:
        back = graph.reverse[a]
        assert (graph.head[back], graph.reverse[back], graph.edge[back]) == (p, a, graph.edge[a])
    score_of = {}
    for y in itertools.product(range(labels), repeat=nodes):
        total = graph.score[0] + sum(theta[p, k] for p, k in enumerate(y))
        total -= sum(graph.cap[graph.edge[a]] for p, a in arcs if y[p] != y[graph.head[a]])
        if total > NEVER / 2:
            score_of[y] = total
    return score_of


@pytest.mark.parametrize(("turns", "cuts"), [((1, 2), True), ((2, 3), False)])
def test_bound__of_smaller_graphs_is_at_least_the_maximum_whatever_the_workspace_holds(turns, cuts, monkeypatch):
    monkeypatch.setattr(search, "TURNS", turns)
    problem, rng = potts(n=6), np.random.default_rng(14)
    turned, tighter, proven = 0, 0, 0
    _, cut, moves = problem.scratch()
    for smoothing, i in itertools.product((0.2, 0.6, 1.5), range(problem.n)):
        work = whole_graph(problem, i, rng, smoothing=smoothing)
        graph = work[0][0]
        all_scores = scores(graph)
        most = max(all_scores.values())
        graph.best[:] = 0
        search.maximise(9, 0.0, cuts, work, cut, moves)
        turned += work[4][0] > 0
        answer = all_scores[tuple(graph.best[: graph.size[0]].tolist())]
        bound = search.certified_bound(answer, work)
        assert answer <= most + 1e-12
        assert most <= bound + 1e-12
        proven += bound <= answer + 1e-9
        work[4][0] = 0
        whole = search.certified_bound(answer, work)
        assert bound <= whole + 1e-12
        tighter += bound < whole - 1e-9
        for scale in (0.1, 10.0, 1e5):
            for each in work[0]:
                each.u[:] += scale * rng.normal(size=each.u.size)
                each.score[1] = rng.choice([np.nan, np.inf, answer + scale * rng.normal()])
            work[4][0] = rng.integers(-1, 5)
            at_hand = rng.choice(list(all_scores.values()))
            assert search.certified_bound(at_hand, work) >= most - 1e-12 * scale
    assert turned >= 3
    assert tighter >= 1
    assert proven >= 14
