"""Trees of parts: the oracle against enumeration on grids of many shapes, counts of weights, measures, and errors;
what the bounds of messages leave out changes no bit."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from dense import best
from single import never
from tiny import instance
from tiny.tree_instances import tree_arrays

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.tree.maxsum import workspace
from gapwise.stages.problems.tree.messages import message_of
from gapwise.stages.problems.tree.metrics import metrics
from gapwise.stages.problems.tree.rows import LOWEST, least_room, padded
from gapwise.stages.problems.tree.tree import Tree, squares, weights
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import Goal
from gapwise.stages.solver.options import CacheOptions, PathOptions, Status
from gapwise.stages.solver.path.walk import begin

TREES = {
    "two branches": ([-1, 0, 0, 1], 2, [(3, 4), (1, 9), (2, 5)]),
    "a line": ([-1, 0, 1], 3, [(4, 4), (10, 3), (1, 1)]),
    "one node": ([-1], 1, [(3, 3)]),
}


UNITS = {"per_cell": 0.5, "per_square": 1.5, "per_unary": 0.7}


def draw(problem: Tree, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Weights: springs have none that push apart."""
    w = np.zeros(problem.d) if kind == "zero" else rng.normal(size=problem.d)
    if kind != "any":
        w = np.clip(w, problem.lower, problem.upper)
    return 30.0 * w if kind == "far apart" else w


def scores_of_arc(problem: Tree, i: int, w: np.ndarray, arc: int) -> np.ndarray:
    """(places of the parent, places of the child): the best score of the arc over its types, straight from the formula."""
    V, T, columns, scale = problem.parent.size, problem.anchors.shape[2], problem.hw[i, 1], problem.relation_scale
    size = int(problem.hw[i].prod())
    maps = problem.relations[problem.relations_ptr[i] : problem.relations_ptr[i + 1]].reshape(V - 1, 2, T, size)
    cells = np.arange(size)
    xy = np.stack([cells % columns, cells // columns], axis=1)
    total = np.zeros((size, size))
    for side, sign in ((0, 1.0), (1, -1.0)):
        sums = []
        for t in range(T):
            d = (sign * (xy[None] - xy[:, None]) - problem.anchors[arc, side, t]) * problem.per_cell
            square = problem.per_square * d**2
            psi = np.stack([d[..., 0], -square[..., 0], d[..., 1], -square[..., 1]], axis=-1)
            o = V + ((arc * 2 + side) * T + t) * 4
            here = w[problem.d - 2 * (V - 1) + 2 * arc + side] * scale * maps[arc, side, t]
            sums.append(psi @ w[o : o + 4] + (here[:, None] if side == 0 else here[None]))
        total += np.max(sums, axis=0)
    return total


def best_by_enumeration(problem: Tree, i: int, w: np.ndarray, augmented: bool) -> float:
    """The largest score (plus loss) over all places of all nodes."""
    V, size, columns = problem.parent.size, int(problem.hw[i].prod()), int(problem.hw[i, 1])
    unary = (
        problem.unary[problem.unary_ptr[i] : problem.unary_ptr[i + 1]].reshape(V, size).astype(float)
        * problem.per_unary
    )
    total = np.zeros((1,) * V)
    for v in range(V):
        own = w[v] * unary[v]
        if augmented:
            true, cells = int(problem.truth[problem.label_ptr[i] + v]), np.arange(size)
            distance2 = (cells // columns - true // columns) ** 2 + (cells % columns - true % columns) ** 2
            own = own + problem.node_loss[v] * np.minimum(1.0, distance2 / problem.scale2[i])
        total = total + own.reshape([size if u == v else 1 for u in range(V)])
        if v > 0:
            total = total + scores_of_arc(problem, i, w, v - 1).reshape(
                [size if u in (v, problem.parent[v]) else 1 for u in range(V)]
            )
    return float(total.max())


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("name", "kind"),
    [("two branches", "any"), ("two branches", "zero"), ("a line", "springs"), ("one node", "far apart")],
)
def test_oracles__equal_enumeration(name, kind):
    parent, types, grids = TREES[name]
    problem = build("tree", tree_arrays(1, parent, types, grids), UNITS)
    rng, scratch = np.random.default_rng(len(kind)), problem.scratch()
    for i in range(problem.n):
        w = draw(problem, kind, rng)
        y = np.zeros(int(problem.label_ptr[1]), np.int16)
        loss = problem.max_oracle(i, w, y, scratch)
        assert loss == pytest.approx(problem.loss(i, y), abs=1e-12)
        best = best_by_enumeration(problem, i, w, True)
        assert loss + problem.value(i, w, y) == pytest.approx(best, rel=1e-12, abs=1e-9)
        problem.decode(i, w, y, scratch)
        best = best_by_enumeration(problem, i, w, False)
        assert problem.value(i, w, y) == pytest.approx(best, rel=1e-12, abs=1e-9)
        assert (y[: len(parent)] < problem.hw[i].prod()).all()
        assert (y[len(parent) :] < types).all()


@pytest.mark.interpreted
def test_solver__reaches_the_optimum_of_the_dense_problem():
    path = PathOptions(rule="single", lam=0.3, tolerance=1e-5)
    options = method_options(step="pairwise", cache=CacheOptions(kind="gap"), refresh_every=2, max_passes=500.0)
    solver = begin(instance("tree"), options, path, None, seed=0)
    status, point = solver.solve(Goal(path.tolerance), never)
    assert status is Status.CONVERGED
    assert point is not None
    assert point.dual - 1e-7 <= best("tree", 0.3) <= point.primal + 1e-7


def test_weights__are_those_of_the_paper():
    assert weights(26, 13) == 26 + 2600 + 50 == 2676
    assert squares(26, 13).sum() == 1300
    problem = build("tree", tree_arrays(1, [-1, 0, 1], 2, [(2, 3)]), {})
    assert problem.d == weights(3, 2) == problem.lower.size
    assert (problem.lower == 0).sum() == squares(3, 2).sum()
    assert np.isinf(problem.upper).all()


def test_features__of_codes_and_of_numbers_are_the_same():
    parent, grids = [-1, 0, 0], [(2, 3), (3, 2)]
    codes, plain = (build("tree", tree_arrays(2, parent, 2, grids, codes=codes), {}) for codes in (True, False))
    assert (codes.relations.dtype, plain.relations.dtype) == (np.uint8, np.float32)
    rng = np.random.default_rng(0)
    for i in range(2):
        y = np.append(rng.integers(6, size=3), rng.integers(2, size=4)).astype(np.int16)
        phi = [np.zeros(codes.d), np.zeros(codes.d)]
        for problem, out in zip((codes, plain), phi, strict=True):
            problem.add(i, y, 1.0, out)
        np.testing.assert_allclose(*phi, rtol=1e-6)


def test_metrics__count_limbs_and_joints_within_reach():
    """One of two points is off by three cells of 10 pixels; the trunk is 50 long, the limb 60."""
    arrays = tree_arrays(1, [-1, 0], 1, [(1, 9)])
    arrays |= {
        "points": np.array([4.5, 4.5, 64.5, 4.5]), "trunk": np.array([50.0]), "point_nodes": np.array([0, 1]),
        "limb_ends": np.eye(2)[None], "cell": np.array([10.0]),
    }  # fmt: skip
    arrays["unary"] = np.eye(9, dtype=np.float32)[[0, 6]].reshape(-1)
    problem = build("tree", arrays, {})
    measures = metrics(problem, arrays, np.array([0, 3, 0, 0]))
    assert measures == {"pcp": 1.0, "pdj": 0.5, "pcp_unary": 1.0, "pdj_unary": 1.0}
    assert metrics(problem, arrays, np.array([0, 2, 0, 0]))["pcp"] == 0.0
    bare = {name: array for name, array in arrays.items() if name != "points"}
    assert metrics(problem, bare, problem.truth) == {"misplaced_nodes": 0.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": np.array([-1, 2, 0])}, "expected -1 for node 0"),
        ({"node_loss": np.array([0.5, 0.1, 0.1])}, "3 shares >= 0 that sum to 1"),
        ({"labels": np.array([6, 0, 0, 0, 0, 0, 0])}, "block 0: labels holds the place 6"),
        ({"unary": np.full(18, np.nan, np.float32)}, "block 0: unary has a value that is not finite"),
        ({"grid": np.array([[2, 2]])}, "block 0: unary has length 18, expected 12"),
    ],
)
def test_build__says_what_is_wrong(change, message):
    arrays = tree_arrays(1, [-1, 0, 0], 2, [(2, 3)])
    with pytest.raises(ValueError, match=message):
        build("tree", arrays | change, {})


COMPILED = not numba.config.DISABLE_JIT
GRIDS = [
    pytest.param((3, 5), marks=pytest.mark.interpreted),
    *(pytest.param(grid, marks=[pytest.mark.slow, pytest.mark.skipif(not COMPILED, reason="minutes without the JIT")])
      for grid in ((7, 19), (2, 70))),  # 70 columns: more than eight times eight
]  # fmt: skip


@numba.njit(**PLAIN)
def computed(rows, columns, types, child, parent, tables, work):
    """work[1] <- the message, as the oracle computes it."""
    pair, tops, bounds, order, rooms, ages = work[5:]
    message_of(rows, columns, types, work[1], child, parent, tables, pair, tops, bounds, order, rooms, ages)


def of_all_pairs(child: np.ndarray, parent: np.ndarray, springs: np.ndarray) -> np.ndarray:
    """The message from its formula, nothing left out and sums in the same order.

    child, parent: (types, rows, columns). springs: (2, 2, types, most), of either end, by displacement along rows, columns.
    """
    types, rows, columns = child.shape
    message = np.full((rows, columns), LOWEST)
    down = np.arange(rows)[None] - np.arange(rows)[:, None] + rows - 1  # (parent's row, child's row)
    along = np.arange(columns)[:, None] - np.arange(columns)[None] + columns - 1  # (parent's column, child's column)
    for t in range(types):
        for u in range(types):
            by_row, by_column = (springs[0, axis, t] + springs[1, axis, u] for axis in range(2))
            first = np.max(child[u][None] + by_row[down][:, :, None], axis=1)
            second = np.max(by_column[along][None] + first[:, None], axis=2)
            message = np.maximum(message, second + parent[t])
    return message


def drawn(kind: str, types: int, shape: tuple[int, int], rng: np.random.Generator) -> list[np.ndarray]:
    """Scores of the child, of the parent, and of displacements; with "steps" many sums are equal."""
    most = 2 * max(shape) - 1
    arrays = [rng.normal(size=size) for size in ((types, *shape), (types, *shape), (2, 2, types, most))]
    if kind == "steps":
        return [np.round(array) for array in arrays]
    if kind == "springs":
        arrays[2] = -0.02 * (np.arange(most) - rng.integers(most, size=(2, 2, types, 1))) ** 2.0
    return [arrays[0], 0.3 * arrays[1], arrays[2]] if kind == "springs" else [1e-3 * array for array in arrays]


@pytest.mark.parametrize("kind", ["steps", "springs", "any"])
@pytest.mark.parametrize("shape", GRIDS, ids=str)
def test_messages__have_the_bits_of_all_pairs(shape, kind):
    rows, columns = shape
    stride = padded(columns)
    for types in (1, 3):
        work = workspace(1, types, rows + 2, columns + 5)  # of a block that is not the largest
        for seed in range(3):
            child, parent, springs = drawn(kind, types, shape, np.random.default_rng(seed))
            maps = [np.full((types, rows, stride), LOWEST) for _ in range(2)]
            maps[0][..., :columns], maps[1][..., :columns] = child, parent
            tables = work[4].reshape(2 * types, 2, -1)
            tables[:] = LOWEST
            for axis, size in ((0, 2 * rows - 1), (1, 2 * columns - 1)):
                tables[:, axis, :size] = springs[:, axis, :, :size].reshape(2 * types, size)
            computed(rows, columns, types, maps[0].reshape(-1), maps[1].reshape(-1), work[4], work)
            got = work[1][: rows * stride].reshape(rows, stride)[:, :columns]
            np.testing.assert_array_equal(got, of_all_pairs(child, parent, springs))


def test_room__leaves_the_sum_at_most_as_large():
    rng = np.random.default_rng(0)
    for _ in range(200 if COMPILED else 40):
        a, b = (rng.normal(size=8) * 10.0 ** rng.integers(-8, 8, size=8) for _ in range(2))
        x = least_room(a, 0, b, 0, 8)
        assert (x + b <= a).all()
        assert x >= np.min(a - b) - 2e-15 * np.max(np.abs(a) + np.abs(b))
