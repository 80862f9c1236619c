"""Bounds: the certified gap at every lambda of a path, as curves for figures; each rule's own `bound` gives the values."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import certainty_told
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.layout import EVALUATED

Arrays = Mapping[str, np.ndarray]
Attrs = Facts
Curve = tuple[np.ndarray, np.ndarray]
"""(lambda, bound on the gap), lambda falling; the bound is on gap / primal for a path with `relative`."""


def gap_label(attrs: Attrs, *, relative: bool = False) -> str:
    """The label of an axis of gaps, with their kind: exact, upper-bounded or estimate."""
    return f"duality gap{' / primal' if relative else ''} ({certainty_told(attrs)})"


def whole_axis(arrays: Arrays, attrs: Attrs, first: float, last: float) -> Curve:
    """From `first`, above the first breakpoint, down to `last`, or to where the path ends.

    Parameters
    ----------
    arrays, attrs : mapping
        Those of a path.zarr.
    """
    top = _just_above_first(arrays)
    below = _below_first(arrays, last / float(arrays["lambda"][-1]))
    return _curve(arrays, attrs, np.append(np.geomspace(max(first, top), top, 200), below))


def shown_lambdas(arrays: Arrays, attrs: Attrs) -> tuple[float, float]:
    """(least, most) lambda of charts over lambda, which is the same for gaps and losses of a run."""
    lam = np.append(arrays["lambda"], arrays.get(f"{EVALUATED}lambda", []))
    if "cell_low" not in arrays:
        return float(lam.min()) / 1.5, float(lam.max()) * 1.5
    top = float(attrs.get("lambda_top", attrs.get("lam_top", lam.max())))
    return 0.3 * float(lam.min()), 1.5 * max(top, float(lam.max()))


def _curve(arrays: Arrays, attrs: Attrs, lam: np.ndarray) -> Curve:
    return lam, path_rule(str(attrs["rule"])).bound(arrays, attrs, lam)


def _below_first(arrays: Arrays, end: float) -> np.ndarray:
    """30 lambdas in each cell [low, high) from the first breakpoint down; the bound may jump between two cells."""
    below = arrays["cell_interval"] >= 1
    highs = np.minimum(arrays["cell_high"][below], _just_above_first(arrays))
    lams = []
    for low, high in zip(arrays["cell_low"][below], highs, strict=True):
        inside = max(float(np.nextafter(high, 0.0)), low)
        lams.append(np.geomspace(inside, low if low > 0.0 else end * high, 30))
    return np.concatenate([np.empty(0), *lams])  # no cell: a limit ended the path at its first breakpoint


def _just_above_first(arrays: Arrays) -> float:
    return float(np.nextafter(arrays["lambda"][0], math.inf))
