"""Bounds: the certified gap at every lambda of a path, as curves for figures.

Each path rule certifies in its own way (`stages.solver.path`); this is the only module of the reports that asks which one
made a path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stages.solver.path.cells import Pair, Point, zero

TAIL = 0.3
"""How far an interval that reaches down to 0 is drawn: to this share of its upper end."""
Arrays = Mapping[str, np.ndarray]
Attrs = Mapping[str, Any]
Curve = tuple[np.ndarray, np.ndarray]
"""(lambda, bound on the gap), lambda falling; the bound is on gap / primal for a path with `relative`."""


def whole_axis(arrays: Arrays, attrs: Attrs, first: float, last: float) -> Curve:
    """From `first`, above the first breakpoint, down to `last`, or to where the path ends.

    Parameters
    ----------
    arrays, attrs : mapping
        Those of a path.zarr.
    """
    above = _above(arrays, attrs, first)
    below = between(arrays, attrs, last / float(arrays["lambda"][-1]))
    return np.append(above[0], below[0]), np.append(above[1], below[1])


def between(arrays: Arrays, attrs: Attrs, end: float = TAIL) -> Curve:
    """From the first breakpoint down; an interval that reaches down to 0 is followed to `end` times its upper end."""
    if attrs["rule"] == "two_sided":
        return _between_cells(arrays, attrs, end)
    at, bound = [], []
    columns = (arrays[name] for name in ("lambda", "lambda_low", "gap", "hinge", "norm2"))
    for lam, low, gap, hinge, norm2 in zip(*columns, strict=True):
        x = np.geomspace(lam, low if low > 0.0 else end * lam, 30)
        fixed = gap + norm2 * (lam - x) ** 2 / (2 * x)
        at.append(x)
        if low <= 0.0:
            bound.append(np.minimum(fixed, max(gap, hinge)))
        else:
            bound.append(gap + (1 - x / lam) * (hinge - gap) if attrs["rule"] == "paper" else fixed)
    return np.concatenate(at), np.concatenate(bound)


def _between_cells(arrays: Arrays, attrs: Attrs, end: float) -> Curve:
    columns = (arrays[name] for name in ("lambda", "gap", "hinge", "loss_dual", "norm2"))
    points = [Point(lam, g, R, ell, N, lam**2 * N) for lam, g, R, ell, N in zip(*columns, strict=True)]
    zero_hinge = float(attrs["hinge_at_zero"])
    nothing = Point(0.0, 0.0, zero_hinge, 0.0, 0.0, 0.0)
    at, bound = [], []
    for c in np.flatnonzero(arrays["cell_interval"] >= 1):
        k, low, high = int(arrays["cell_interval"][c]), arrays["cell_low"][c], arrays["cell_high"][c]
        above, below = points[k - 1], points[k] if k < len(points) else nothing
        pair = Pair(above, below, arrays["cell_inner"][c], arrays["cell_dual_inner"][c], zero_hinge)
        t, tau = arrays["cell_primal"][c], arrays["cell_dual"][c]
        for lam in np.geomspace(high, low if low > 0.0 else end * high, 30):
            share, primal = tau, pair.primal(lam, t)
            if low == 0.0:
                share = tau * (min(1.0, above.ell * lam / above.dual_norm2) if above.dual_norm2 > 0.0 else 1.0)
                primal = 0.5 * lam * t[0] ** 2 * above.norm2 + (above.hinge if t[0] == 1.0 else 0.0)
            gap = primal - pair.dual(lam, share)
            at.append(lam)
            bound.append(gap / primal if attrs["relative"] else gap)
    return np.array(at), np.array(bound)


def _above(arrays: Arrays, attrs: Attrs, first: float) -> Curve:
    """From `first` down to the first breakpoint: of w = 0, of the first w scaled, or of cells.

    The rule `paper` has no top: above its first lambda it scales w^1, and the gap is convex in the scale.
    """
    lam, gap, hinge, ell, N = (float(arrays[name][0]) for name in ("lambda", "gap", "hinge", "loss_dual", "norm2"))
    hinge_zero, psi_norm2, rule = float(attrs["hinge_at_zero"]), float(attrs["psi_norm2"]), attrs["rule"]
    top = max(float(attrs["lam_top"]), lam)
    x = np.geomspace(max(first, lam), lam, 200)
    if rule == "paper":
        s = lam / x
        return x, s * gap + (1.0 - s) * (hinge_zero - ell)
    zero_gap = psi_norm2 / (2.0 * x) / (hinge_zero if attrs["relative"] else 1.0)
    if rule == "one_sided":
        t = np.clip((hinge_zero - hinge) / (x * N), 0.0, 1.0) if N > 0.0 else np.ones_like(x)
        scaled = 0.5 * x * t**2 * N + t * hinge + (1.0 - t) * hinge_zero - ell + lam**2 * N / (2.0 * x)
        return x, np.where(x >= top, zero_gap, scaled)
    point, bound = Point(lam, gap, hinge, ell, N, lam**2 * N), zero_gap.copy()
    for c in np.flatnonzero(arrays["cell_interval"] == 0):
        pair = Pair(zero(hinge_zero, psi_norm2), point, 0.0, float(arrays["cell_dual_inner"][c]), hinge_zero)
        (t_a, t_b), (tau_a, tau_b) = arrays["cell_primal"][c], arrays["cell_dual"][c]
        for k in np.flatnonzero((x < top) & (x >= arrays["cell_low"][c]) & (x <= arrays["cell_high"][c])):
            primal = pair.primal(x[k], (t_a, t_b))
            bound[k] = (primal - pair.dual(x[k], (tau_a, tau_b))) / (primal if attrs["relative"] else 1.0)
    return x, bound
