"""The minimum cut: against enumeration on small graphs, against PyMaxflow on graphs like those of images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import config
from scipy.spatial import Delaunay

from gapwise.stages.problems.images.maxflow import adjacency, minimum_cut, workspace


def cut_value(edges, capacity, terminal, sink_side):
    across = capacity[sink_side[edges[:, 0]] != sink_side[edges[:, 1]]].sum()
    return np.maximum(terminal, 0)[sink_side == 1].sum() + np.maximum(-terminal, 0)[sink_side == 0].sum() + across


def solve(edges, capacity, terminal):
    size, count = terminal.size, len(edges)
    graph = adjacency(edges, np.array([0, count]), np.array([0, size]))
    work, sink_side = workspace(size, count), np.full(size, 7, np.uint8)
    work[0][:size] = terminal
    minimum_cut(*graph, capacity, sink_side, work)
    return sink_side


def random_graph(rng, size, density):
    pairs = [pair for pair in itertools.combinations(range(size), 2) if rng.random() < density]
    return np.array(pairs, np.int64).reshape(-1, 2)


def draw_integers(rng, count):
    return rng.integers(0, 4, count).astype(float)


def draw_scales(rng, count):
    return 10.0 ** rng.uniform(-18, 12, count)


def draw_gamma(rng, count):
    return rng.gamma(0.5, size=count)


def test_adjacency__of_many_graphs_is_that_of_each():
    """Some have no edges."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 7, 20)
    graphs = [random_graph(rng, size, rng.choice([0.0, 0.3, 1.0])) for size in sizes]
    pointers = (np.concatenate([[0], np.cumsum(counts)]) for counts in ([len(g) for g in graphs], sizes))
    arrays = adjacency(np.concatenate(graphs), *pointers)
    each = [
        adjacency(graph, np.array([0, len(graph)]), np.array([0, size]))
        for graph, size in zip(graphs, sizes, strict=True)
    ]
    for together, alone in zip(arrays, zip(*each, strict=True), strict=True):
        assert together.dtype == np.int32
        np.testing.assert_array_equal(together, np.concatenate(alone))


@pytest.mark.parametrize("draw", [draw_integers, draw_gamma, draw_scales])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_cut__equals_enumeration(draw, density):
    """Integers bring ties and zero capacities; the smallest optimal sink side is returned, which is unique."""
    rng = np.random.default_rng(int(10 * density))
    for trial in range(21):
        size = 1 + trial % 7
        edges = random_graph(rng, size, density)
        capacity, terminal = draw(rng, len(edges)), draw(rng, size) * rng.choice([-1, 1], size)
        cut = solve(edges, capacity, terminal)
        sides = [np.array(side, np.uint8) for side in itertools.product((0, 1), repeat=size)]
        values = np.array([cut_value(edges, capacity, terminal, side) for side in sides])
        scale = capacity.sum() + np.abs(terminal).sum()
        assert cut_value(edges, capacity, terminal, cut) <= values.min() + 1e-13 * scale
        if draw is draw_integers:
            smallest = np.min(
                [side for side, value in zip(sides, values, strict=True) if value == values.min()], axis=0
            )
            np.testing.assert_array_equal(cut, smallest)


def test_cut__of_a_chain_carries_flow_end_to_end():
    size = 60
    edges = np.stack([np.arange(size - 1), np.arange(1, size)], axis=1)
    capacity, terminal = np.full(size - 1, 5.0), np.zeros(size)
    terminal[0], terminal[-1], capacity[37] = 3.0, -4.0, 2.5
    np.testing.assert_array_equal(solve(edges, capacity, terminal), np.arange(size) > 37)
    capacity[37] = 3.5  # now the source's own arc is the bottleneck, and everything can reach the sink
    assert solve(edges, capacity, terminal).all()


def test_cut__takes_parallel_edges_and_ignores_negative_ones():
    edges = np.array([[0, 1], [0, 1], [1, 2]])
    terminal = np.array([3.0, 0.0, -5.0])
    assert solve(edges, np.array([2.0, 2.0, 9.0]), terminal).tolist() == [1, 1, 1]
    assert solve(edges, np.array([2.0, -2.0, 9.0]), terminal).tolist() == [0, 1, 1]


def test_cut__ends_where_pushes_are_below_rounding():
    """Capacities so far apart that adding a flow to a residual does not change it."""
    rng = np.random.default_rng(5)
    for _ in range(200 if not config.DISABLE_JIT else 20):
        edges = random_graph(rng, 12, 0.5)
        capacity = rng.choice([1e-300, 1e-30, 1.0, 1e15, 1e16], len(edges))
        terminal = rng.choice([-1e17, -1.0, -1e-20, 0.0, 1e-20, 1.0, 1e17], 12)
        cut = solve(edges, capacity, terminal)
        np.testing.assert_array_equal(cut, solve(edges, capacity, terminal))
        assert set(cut.tolist()) <= {0, 1}


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="large graphs take long without compilation")
@pytest.mark.parametrize(("size", "smoothing"), [(147, 0.3), (147, 3.0), (2000, 0.03)])
def test_cut__equals_pymaxflow_on_planar_graphs(size, smoothing):
    maxflow = pytest.importorskip("maxflow")
    rng = np.random.default_rng(size)
    for _ in range(20 if size < 1000 else 3):
        points = rng.random((size, 2))
        triangles = Delaunay(points).simplices
        edges = np.unique(np.sort(triangles[:, [0, 1, 1, 2, 0, 2]].reshape(-1, 2), axis=1), axis=0).astype(np.int64)
        capacity = smoothing * rng.gamma(1.0, size=len(edges))
        terminal = 4 * (np.linalg.norm(points - 0.5, axis=1) - 0.3) + rng.normal(size=size)
        graph = maxflow.GraphFloat(size, len(edges))
        nodes = graph.add_nodes(size)
        graph.add_edges(edges[:, 0], edges[:, 1], capacity, capacity)
        graph.add_grid_tedges(nodes, np.maximum(terminal, 0), np.maximum(-terminal, 0))
        flow = graph.maxflow()
        cut = solve(edges, capacity, terminal)
        assert cut_value(edges, capacity, terminal, cut) == pytest.approx(flow, rel=1e-12)
        np.testing.assert_array_equal(cut, graph.get_grid_segments(nodes))  # no ties here: the cut is unique
