"""Smaller graphs of the Potts oracle against brute force: a best labelling is never left out, whatever the messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tiny import potts

from gapwise.stages.problems.potts import search, shrink
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


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0])
def test_reduce__leaves_a_best_labelling_and_keeps_scores(scale):
    problem, rng = potts(n=6), np.random.default_rng(11)
    smaller = 0
    for smoothing, i, rank in itertools.product((0.1, 0.5, 2.0), range(problem.n), (0, 1, 5)):
        work = whole_graph(problem, i, rng, scale, smoothing)
        graph, less = work[0][:2]
        all_scores = scores(graph)
        most = max(all_scores.values())
        at_hand = sorted(all_scores.values())[-1 - min(rank, len(all_scores) - 1)]
        assert shrink.exclude(graph, at_hand, work[1])
        shrink.reduce(graph, less, work[1])
        less.best[:] = 0
        left = scores(less)
        assert max(left.values()) == pytest.approx(most, abs=1e-12)
        for y, score in left.items():
            less.best[: len(y)] = y
            shrink.give_back(graph, less)
            assert all_scores[tuple(graph.best[: graph.size[0]].tolist())] == pytest.approx(score, abs=1e-12)
        smaller += len(left) < len(all_scores)
    assert smaller >= 20


def test_exclude__refuses_messages_that_are_no_numbers():
    problem, rng = potts(n=6), np.random.default_rng(12)
    for wrong in (np.nan, np.inf, -np.inf):
        work = whole_graph(problem, 2, rng)
        work[0][0].u[3] = wrong
        assert not shrink.exclude(work[0][0], 0.0, work[1])


def test_exclude__leaves_one_label_to_a_node_without_edges():
    """Also where all its labels are equally good, as those of void superpixels are."""
    problem, rng = potts(n=6), np.random.default_rng(13)
    work = whole_graph(problem, 2, rng, smoothing=0.0)
    graph, less = work[0][:2]
    graph.theta[:3] = 0.25
    assert shrink.exclude(graph, -100.0, work[1])
    shrink.reduce(graph, less, work[1])
    assert less.size[0] == 0
    assert less.score[0] == pytest.approx(max(scores(graph).values()))


@pytest.mark.parametrize("turns", [(1, 2), (2, 3)])
@pytest.mark.parametrize("cuts", [False, True])
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


@pytest.mark.parametrize("classes", [3, 9])
def test_bound__of_smaller_graphs_is_the_maximum_on_trees(classes, monkeypatch):
    monkeypatch.setattr(search, "TURNS", (1, 2))
    problem, rng = potts(tree=True, classes=classes, most=4 if classes == 9 else 6), np.random.default_rng(15)
    turned = 0
    for i in range(problem.n):
        work = whole_graph(problem, i, rng)
        most = max(scores(work[0][0]).values())
        search.maximise(30, 0.0, False, work, *problem.scratch()[1:])
        answer = scores(work[0][0])[tuple(work[0][0].best[: work[0][0].size[0]].tolist())]
        turned += work[4][0] > 0
        assert answer == pytest.approx(most, abs=1e-12)
        assert search.certified_bound(answer, work) == pytest.approx(most, abs=1e-12)
    assert turned >= 1
