"""What a solve leaves, under the names of `storage.layout`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from stages.solver.options import Status
from stages.solver.path.two_sided import TwoSided, flat_cells
from stages.solver.path.walk import Breakpoint, PathStart


def record(b: Breakpoint) -> dict[str, Any]:
    """A breakpoint under the names of `storage.layout.PATH`."""
    point = b.point
    return {
        "lambda": point.lam,
        "lambda_low": b.lambda_low,
        "gap": point.gap,
        "primal": point.primal,
        "dual": point.dual,
        "hinge": point.hinge,
        "loss_dual": point.ell,
        "norm2": point.norm2,
        "effective_passes": b.effective_passes,
        "oracle_calls": b.oracle_calls,
        "seconds": b.seconds,
        "status": list(Status).index(b.status),
        "weights": b.weights,
        "block_gap": b.block_gap,
        "support_offset": b.supports.offset,
        "support_alpha": b.supports.alpha,
        "support_loss": b.supports.losses,
        "support_label": b.supports.label,
        "label_offset": b.supports.label_offset,
    }


def cell_arrays(sides: TwoSided) -> dict[str, np.ndarray]:
    """The cells of a two-sided path under the names of CELLS."""
    rows = flat_cells(sides.cells)
    return {
        "cell_interval": rows[:, 0].astype(np.int64),
        "cell_low": rows[:, 1],
        "cell_high": rows[:, 2],
        "cell_primal": rows[:, 3:5],
        "cell_dual": rows[:, 5:7],
        "cell_inner": rows[:, 7],
        "cell_dual_inner": rows[:, 8],
    }


def scalars_of(start: PathStart) -> dict[str, Any]:
    """The numbers of a path's start, as attributes."""
    arrays = ("labels", "losses", "psi")
    return {f.name: getattr(start, f.name) for f in dataclasses.fields(start) if f.name not in arrays}
