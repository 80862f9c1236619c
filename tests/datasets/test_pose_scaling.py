"""Units of pose features: the formulas, and what they do to the penalty."""

from __future__ import annotations

import numpy as np

from gapwise.stages.datasets.poses.scaling import MapSpread, deformation_units


def test_deformation_units__divide_by_the_spread_of_displacements():
    for radius, types in ((1, 1), (5, 13)):
        per_cell, per_square = deformation_units(radius, types)
        k = per_cell * np.arange(-radius, radius + 1)
        np.testing.assert_allclose(np.std(k), np.sqrt(types))
        np.testing.assert_allclose(np.std(per_square * k**2), np.sqrt(types))


def test_map_spread__is_measured_around_the_true_places():
    """Maps that vary along columns only near the truth of one image: a ramp in one, constant in the other."""
    rows, columns, parent = 9, 11, np.array([-1, 0])
    ramp = np.broadcast_to(np.arange(columns, dtype=np.float32), (rows, columns))
    far = np.zeros((rows, columns), np.float32)
    far[:, 10] = 100.0
    relations = np.zeros((1, 2, 2, rows, columns), np.uint8)
    relations[:, :, 1] = 6
    block = {
        "grid": np.array([[rows, columns]]),
        "unary": np.stack([ramp, far]).reshape(-1),
        "relations": relations.reshape(-1),
        "labels": np.array([4 * columns + 5, 4 * columns + 3, 0, 0]),
    }
    spread = MapSpread(2, 2, parent, 2)
    spread.add(block)
    unary, codes = spread.values()
    np.testing.assert_allclose(unary, np.sqrt(np.var(np.arange(5)) / 2))
    assert codes == 3.0
