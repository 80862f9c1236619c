"""Cells as arrays, and the bound on the gap that stored cells certify at any lambda."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.stages.solver.packed import number
from gapwise.stages.solver.path.cells import Cell, Pair, SolvedPoint, zero

CELL_COLUMNS = 9
"""Columns of `flat_cells`."""


def flat_cells(cells: list[Cell]) -> np.ndarray:
    """One row per cell: interval, low, high, t_a, t_b, tau_a, tau_b, G, S."""
    rows = [(c.interval, c.low, c.high, *c.primal, *c.dual, c.inner, c.dual_inner) for c in cells]
    return np.array(rows, dtype=float).reshape(-1, CELL_COLUMNS)


def cells_of(rows: np.ndarray) -> list[Cell]:
    """The cells of the rows of `flat_cells`."""
    return [Cell(int(k), lo, hi, (a, b), (c, d), G, S) for k, lo, hi, a, b, c, d, G, S in rows.tolist()]


def model_of(cells: list[Cell]) -> dict[str, np.ndarray]:
    """Cells as arrays of `storage.layout.CELLS` and `CELL_CERTIFICATES`."""
    rows = flat_cells(cells)
    return {
        "cell_interval": rows[:, 0].astype(np.int64),
        "cell_low": rows[:, 1],
        "cell_high": rows[:, 2],
        "cell_primal": rows[:, 3:5],
        "cell_scale": np.full(len(rows), math.inf),
        "cell_dual": rows[:, 5:7],
        "cell_inner": rows[:, 7],
        "cell_dual_inner": rows[:, 8],
    }


def bound_of(arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], lam: np.ndarray) -> np.ndarray:
    """The bound on the gap (or gap / primal) that the cells of path.zarr certify at `lam`, nan where there is no cell."""
    columns = [arrays[name] for name in ("lambda", "gap", "hinge", "loss_dual", "norm2")]
    columns.append(arrays["dual_norm2"] if "dual_norm2" in arrays else arrays["lambda"] ** 2 * arrays["norm2"])
    points = [SolvedPoint(*row) for row in zip(*columns, strict=True)]
    hinge_at_zero, relative = number(attrs, "hinge_at_zero"), bool(attrs["relative"])
    above_all = zero(hinge_at_zero, number(attrs, "psi_norm2"))
    nothing = SolvedPoint(0.0, 0.0, hinge_at_zero, 0.0, 0.0, 0.0)
    low, bounds = arrays["cell_low"], []
    for x in np.ravel(lam).tolist():
        if not x >= low[-1]:
            bounds.append(math.nan)
            continue
        c = int(np.argmax(low <= x))
        k, t, tau = int(arrays["cell_interval"][c]), arrays["cell_primal"][c], arrays["cell_dual"][c]
        if k < 0:  # w = 0
            primal, gap = hinge_at_zero, above_all.dual_norm2 / (2.0 * x)
            bounds.append(share_of(gap, primal) if relative else gap)
            continue
        above = points[k - 1] if k > 0 else above_all
        below = points[k] if k < len(points) else nothing
        pair = Pair(above, below, arrays["cell_inner"][c], arrays["cell_dual_inner"][c], hinge_at_zero)
        primal = pair.primal(x, t)
        if low[c] == 0.0:
            tau = tau * (min(1.0, above.ell * x / above.dual_norm2) if above.dual_norm2 > 0.0 else 1.0)
            primal = 0.5 * x * t[0] ** 2 * above.norm2 + (above.hinge if t[0] == 1.0 else 0.0)
        gap = primal - pair.dual(x, tau)
        bounds.append(share_of(gap, primal) if relative else gap)
    return np.array(bounds).reshape(np.shape(lam))


def share_of(gap: float, primal: float) -> float:
    """gap / primal; the gap itself where the primal value is 0, as where no labelling has a loss."""
    return gap / primal if primal > 0.0 else gap
