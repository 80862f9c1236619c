"""Units of the features of a pose, chosen so that one ridge penalty treats all groups of features alike.

The penalty charges every weight alike, so a group whose features are small needs large weights and is hardly used. Each
group is therefore divided by its spread over plausible alternatives: the labellings in which one node is within r cells of
its true place along both axes. r is the mean distance, in cells, at which a joint's loss stops growing:

* unary maps: the root mean square, over some training images and all nodes, of the standard deviation of U_v(l) over
  these places;
* relation maps: likewise of R_t(l), over these places and all types t;
* dx and dy: the standard deviation of k over k = -r..r, sqrt(r (r + 1) / 3);
* dx^2 and dy^2: that of k^2, sqrt(r (r + 1) (2 r - 1) (2 r + 3) / 45).

Of the T types of an end of an arc, a labelling uses one. T equal springs b would cost T b^2 where a single one would cost
b^2, so deformations are multiplied by sqrt(T) as well. Maps of training images are those that the solver sees, which come
from classifiers that have not seen the image."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


class MapSpread:
    """Collects the spread of score maps about the true places, block by block."""

    def __init__(self, nodes: int, types: int, parent: np.ndarray, radius: int) -> None:
        self.nodes, self.types, self.parent, self.radius = nodes, types, parent, radius
        self.variances: tuple[list[float], list[float]] = ([], [])

    def add(self, block: Mapping[str, np.ndarray]) -> None:
        """A training block: ``unary``, ``relations``, ``grid`` and ``labels``, as the structure `tree` has them."""
        rows, columns = (int(k) for k in block["grid"].reshape(-1))
        unary = block["unary"].reshape(self.nodes, rows, columns)
        relations = block["relations"].reshape(self.nodes - 1, 2, self.types, rows, columns)
        windows = []
        for cell in block["labels"][: self.nodes].tolist():
            r, c = divmod(cell, columns)
            windows.append(tuple(slice(max(k - self.radius, 0), k + self.radius + 1) for k in (r, c)))
        for v, (tall, wide) in enumerate(windows):
            self.variances[0].append(float(unary[v, tall, wide].var(dtype=float)))
        for arc, ends in enumerate(zip(self.parent[1:], range(1, self.nodes), strict=True)):
            for side, v in enumerate(ends):
                tall, wide = windows[v]
                self.variances[1].append(float(relations[arc, side, :, tall, wide].var(dtype=float)))

    def values(self) -> tuple[float, float]:
        """Spread of unary maps and of stored relation maps; 1 for maps that are constant."""
        unary, relations = (float(np.sqrt(np.mean(v))) for v in self.variances)
        return unary or 1.0, relations or 1.0


def deformation_units(radius: int, types: int) -> tuple[float, float]:
    """What a cell of displacement counts, and the factor of its square: (sqrt(T) / s1, sqrt(T) / (s2 unit^2))."""
    r = radius
    of_cells, of_squares = np.sqrt(r * (r + 1) / 3), np.sqrt(r * (r + 1) * (2 * r - 1) * (2 * r + 3) / 45)
    per_cell = np.sqrt(types) / of_cells
    return float(per_cell), float(np.sqrt(types) / (of_squares * per_cell**2))
