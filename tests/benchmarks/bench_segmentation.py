"""What a step of segmentation costs: ``python tests/benchmarks/bench_segmentation.py [--images N] [--codes]``.

Synthetic images of the shape of HorseSeg (about 147 superpixels and 400 edges, 1969 + 100 features). Prints CPU
microseconds per step of each part on one core: medians over repeats, each a pass over all images in a fresh random
order, so that features come from memory and not from cache, as in training. A part is the difference of two passes, one that
ends after it and one that ends before it. Then: the solver's own steps, an oracle call each. Last: how near scores come to
the memory bandwidth, and the cut against PyMaxflow's vectorised interface on the same graphs, alternating in the same run.
With --codes unary rows are uint8.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit
from parts import visits_of
from scipy.spatial import Delaunay

from gapwise.stages.problems.protocol import FAST, JIT, dot
from gapwise.stages.problems.segmentation import Segmentation, build, derived
from gapwise.stages.solver.codes import ORACLE_ALWAYS
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.sampling import PERMUTATION

BLOCKS = ((1, 1.0), (48, 1.0), (384, 0.7), (1536, 0.5))
"""Widths of the constant, the positions, the colours and the SIFT words, and how dense they are."""

SCORES, CUT, NORM, PUSH, UPDATE = range(5)
FW, PAIRWISE, DENSE = range(3)
PASSES = 6


def planar_graph(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (size, 2) in the unit square and the edges (E, 2) between neighbours, as superpixels have them."""
    side = int(np.ceil(np.sqrt(size)))
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2)[:size]
    points = (grid + rng.uniform(-0.35, 0.35, grid.shape)) / side
    triangles = Delaunay(points).simplices
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])
    edges = np.unique(np.sort(sides, axis=1), axis=0)
    length = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    return points, edges[length < 2.2 / side].astype(np.int32)


def image(rng: np.random.Generator, shared: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One block: a disc of foreground, histograms that differ between the classes and overlap."""
    size = int(rng.integers(135, 160))
    points, edges = planar_graph(rng, size)
    labels = (np.linalg.norm(points - rng.uniform(0.3, 0.7, 2), axis=1) < rng.uniform(0.15, 0.4)).astype(np.uint8)
    profile = np.random.default_rng(0).gamma(0.3, size=(2, 1969))
    unary = np.empty((size, 1969), np.float32)
    start = 0
    for width, dense in BLOCKS:
        block = rng.gamma(0.5, size=(size, width)) * (rng.random((size, width)) < dense)
        block += 0.05 * profile[labels, start : start + width] + 1e-3
        unary[:, start : start + width] = block / np.linalg.norm(block, axis=1, keepdims=True)
        start += width
    distance = np.abs(unary[edges[:, 0], 1:] - unary[edges[:, 1], 1:]).reshape(len(edges), -1, 8).mean(axis=2)[:, :9]
    pairwise = np.exp(-(2.0 ** np.arange(-5, 6)[None, None]) * 10 * distance[:, :, None]).reshape(len(edges), 99)
    pairwise = np.hstack([np.ones((len(edges), 1)), pairwise]).astype(np.float32)
    if shared:
        unary = np.rint(unary / shared["unary_scale"]).astype(np.uint8)
    area = rng.integers(400, 900, size).astype(float)
    block = {"unary": unary, "pairwise": pairwise, "edges": edges, "labels": labels, "area": area}
    return block | {"foreground": area * labels} | derived(**block, **shared)


@njit(**FAST)
def stream(x, y):
    """Sum over the arrays: a loop that does little but read them."""
    total = np.float32(0)
    for k in range(x.size):
        total += x[k]
    for k in range(y.size):
        total += y[k]
    return total


@njit(**JIT)
def cut_pass(problem, order, theta, labels):
    scratch = problem.scratch()
    for i in order:
        y = labels[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        problem.max_oracle(i, theta[problem.local_ptr[i] : problem.local_ptr[i + 1]], y, scratch)


@njit(**JIT)
def steps_pass(problem, order, parts, move, scale, mu, ell, labels, w, sink, theta):
    """One pass of exact steps as the solver takes them, up to the given part: scores, cut, B delta, push, update.

    The direction is FW or pairwise from the last labelling; "dense" is FW with no entry zero. Without the update the
    weights stay and the push goes to `sink`, so that passes that stop at different parts differ by these alone.
    Returns the duality gap.
    """
    scratch = problem.scratch()
    longest = 0
    for i in range(problem.n):
        longest = max(longest, problem.local_ptr[i + 1] - problem.local_ptr[i])
    space, last, moved = np.empty(longest), np.empty(longest, labels.dtype), np.empty(problem.d)
    gap = 0.0
    for i in order:
        a, b = problem.local_ptr[i], problem.local_ptr[i + 1]
        m, t, delta = mu[a:b], theta[a:b], space[: b - a]
        y = labels[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        problem.scores(i, w, t)
        if parts == SCORES:
            continue
        before = last[: y.size]
        before[:] = y
        loss = problem.max_oracle(i, t, y, scratch)
        if parts == CUT:
            y[:] = before
            continue
        delta[:] = 0.0
        if move == PAIRWISE:
            problem.add(i, before, -1.0, delta)
        else:
            for k in range(delta.size):
                delta[k] = -m[k] + (1e-12 if move == DENSE else 0.0)
        problem.add(i, y, 1.0, delta)
        moved[:] = 0.0
        problem.push(i, 1.0, delta, moved)
        norm = dot(moved, moved)
        if parts >= PUSH:
            slope = loss - ell[i]
            for k in range(delta.size):
                slope += t[k] * delta[k]
            step = min(1.0, max(0.0, slope) / (scale * norm)) if norm > 0.0 else 1.0
            gap += slope / problem.n
            u = w if parts == UPDATE else sink
            for j in range(u.size):
                u[j] -= scale * step * moved[j]
        if parts == UPDATE:
            for k in range(delta.size):
                m[k] += step * delta[k]
            ell[i] += step * (loss - ell[i])
            for j in range(problem.unary.shape[1], problem.d):
                w[j] = max(w[j], 0.0)
        else:
            y[:] = before
    return gap


PRESETS = {
    "bcfw": method_options(sampler="uniform", step="fw", cache=CacheOptions("none")),
    "bcpfw": method_options(sampler="uniform", step="pairwise", cache=CacheOptions("none")),
    "bcpfw_gap_cache": method_options(cache=CacheOptions("gap")),
}


def solver_step(problem: Segmentation, preset: str, lam: float, orders: list[np.ndarray]) -> float:
    """Median CPU microseconds per step of the real solver, oracle always called, after `PASSES` passes."""
    solver, n, times = begin(problem, PRESETS[preset], PathOptions(rule="single", lam=lam), None, 0), problem.n, []
    solver.warm_up()
    rng = np.random.default_rng(1)
    for k, order in enumerate([rng.permutation(n) for _ in range(PASSES)] + orders):
        solver.iterate.make_room(n)
        solver.rebase()
        flags = visits_of(solver).flags(vertex_from=ORACLE_ALWAYS, sampler=PERMUTATION)
        start = time.process_time()
        visits_of(solver).run(flags, order, n)
        if k >= PASSES:
            times.append(time.process_time() - start)
    return float(np.median(times)) / n * 1e6


def reference_cut(problem: Segmentation, i: int, theta: np.ndarray, cost: np.ndarray) -> float:
    """The same cut by PyMaxflow's vectorised interface, graph construction included, as an oracle would call it."""
    import maxflow

    size = int(problem.label_ptr[i + 1] - problem.label_ptr[i])
    edges = problem.images.edges[problem.images.edge_ptr[i] : problem.images.edge_ptr[i + 1]]
    gain = 2.0 * theta[:size] + cost
    graph = maxflow.Graph[float](size, len(edges))
    nodes = graph.add_nodes(size)
    graph.add_edges(edges[:, 0], edges[:, 1], theta[size:], theta[size:])
    graph.add_grid_tedges(nodes, np.maximum(gain, 0.0), np.maximum(-gain, 0.0))
    flow = graph.maxflow()
    graph.get_grid_segments(nodes)
    return float(flow)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=147)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--codes", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
    from tiny import ragged

    rng = np.random.default_rng(0)
    shared = {"unary_scale": np.array([1 / 255])} if options.codes else {}
    problem = build(ragged([image(rng, shared) for _ in range(options.images)]) | shared, {})
    n, local = problem.n, int(problem.local_ptr[-1])
    orders = [rng.permutation(n) for _ in range(options.repeats + 1)]
    print(
        f"n = {n}, d = {problem.d}, average S = {problem.label_ptr[-1] / n:.0f}, E = {problem.images.edge_ptr[-1] / n:.0f}; "
        f"{(problem.unary.nbytes + problem.pairwise.nbytes) / 1e6:.0f} MB of features"
    )

    # weights worth timing at, and labellings of a few passes before for the pairwise directions
    scale, w, sink = 1.0 / (1e-3 * n), np.zeros(problem.d), np.zeros(problem.d)
    mu, ell, labels, theta = np.zeros(local), np.zeros(n), problem.truth.copy(), np.empty(local)
    for i in range(n):
        truth = problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        problem.add(i, truth, 1.0, mu[problem.local_ptr[i] : problem.local_ptr[i + 1]])
    for k in range(PASSES):
        if k == PASSES - 2:
            fixed = labels.copy()
        gap = steps_pass(problem, rng.permutation(n), UPDATE, FW, scale, mu, ell, labels, w, sink, theta)
    print(f"timed at the weights after {PASSES} passes of FW steps, lambda = 1e-3, gap {gap:.3f}")

    def per_step(parts: int, move: int) -> float:
        """Median CPU microseconds per step over repeated passes from the same state."""
        times = []
        for order in orders:
            state = mu.copy(), ell.copy(), fixed.copy(), w.copy(), sink.copy()
            start = time.process_time()
            steps_pass(problem, order, parts, move, scale, *state, theta)
            times.append(time.process_time() - start)
        return float(np.median(times[1:])) / n * 1e6

    print(
        "direction    "
        + "".join(f"{part:>9s}" for part in ("scores", "cut", "B delta", "push", "step"))
        + "   (CPU us)"
    )
    for name, move in (("FW", FW), ("pairwise", PAIRWISE), ("dense", DENSE)):
        until = [per_step(parts, move) for parts in (SCORES, CUT, NORM, PUSH, UPDATE)]
        columns = [*np.diff([0.0, *until[:4]]), until[4]]
        print(
            f"{name:12s} " + "".join(f"{value:9.1f}" for value in columns) + f"   {until[4] * n / 1e3:5.1f} ms a pass"
        )
        scores = until[0]
    words = ", ".join(f"{preset} {solver_step(problem, preset, 1e-3, orders):.1f}" for preset in PRESETS)
    print(f"the solver's own steps, all with an oracle call: {words} (CPU us)")
    volume = (problem.unary.nbytes + problem.pairwise.nbytes) / n
    flops = 2 * (problem.unary.size + problem.pairwise.size) / n
    times = []
    for _ in orders:
        start = time.process_time()
        stream(problem.unary.reshape(-1), problem.pairwise.reshape(-1))
        times.append(time.process_time() - start)
    floor = float(np.median(times)) / n * 1e6
    print(f"scores: {volume / 1e6:.2f} MB and {flops / 1e6:.2f} Mflop a step, {flops / scores / 1e3:.1f} Gflop/s;")
    print(f"        to read the features takes {floor:.1f} us ({volume / floor / 1e3:.1f} GB/s): ", end="")
    print(f"{100 * floor / scores:.0f} % of the memory bound reached")
    ratios, ours, theirs = [], [], []
    costs = (1.0 - 2.0 * problem.truth) * problem.images.loss_if_wrong
    inputs = [
        (i, theta[slice(*problem.local_ptr[i : i + 2])], costs[slice(*problem.label_ptr[i : i + 2])]) for i in range(n)
    ]
    steps_pass(problem, orders[0], SCORES, FW, scale, mu, ell, labels, w, sink, theta)
    cut_pass(problem, orders[0], theta, labels)
    for _ in range(options.repeats):
        start = time.process_time()
        cut_pass(problem, orders[0], theta, labels)
        middle = time.process_time()
        for cut in inputs:
            reference_cut(problem, *cut)
        ours.append(middle - start)
        theirs.append(time.process_time() - middle)
        ratios.append(ours[-1] / theirs[-1])
    print(
        f"cut: {np.median(ours) / n * 1e6:.1f} us, PyMaxflow {np.median(theirs) / n * 1e6:.1f} us: "
        f"{np.median(ratios):.2f} of its time (median of {options.repeats} pairs)"
    )


if __name__ == "__main__":
    main()
