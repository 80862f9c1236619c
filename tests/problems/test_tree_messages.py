"""Messages of trees: what their bounds leave out changes no bit; rooms below a sum hold however it is rounded."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from gapwise.stages.problems.protocol import PLAIN
from gapwise.stages.problems.tree.maxsum import workspace
from gapwise.stages.problems.tree.messages import message_of
from gapwise.stages.problems.tree.rows import LOWEST, least_room, padded

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
