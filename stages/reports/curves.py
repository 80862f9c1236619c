"""Curves: the gap of a sweep's runs over effective passes and over seconds, as medians within bands over seeds.

A run's curve is its gap trace (`gap_trace`). The runs of a variant and lambda with different seeds give a median and
a band from the least to the largest value (O16 Fig. 3, 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.capabilities import certainty_told
from gapwise.stages.reports.gap_trace import gap_trace_attributes, read_gap_trace
from gapwise.storage.backend import Location

AXES = {"passes": "effective passes", "seconds": "seconds"}
"""The horizontal axes of gap curves, and their labels."""
SMALLEST = 1e-16
"""Gaps are drawn on a logarithmic axis; smaller ones, which rounding may give, are drawn at this value."""

Runs = Sequence[tuple[str, str, int, Location]]
"""(variant, lambda as the sweep names it, seed, run directory)"""
Trace = Mapping[str, np.ndarray]
"""A gap trace, columns of `storage.layout.GAP_TRACE`"""
Curves = dict[tuple[str, str], list[Trace]]
"""(variant, lambda) to the gap traces of its seeds"""


def read_curves(runs: Runs) -> Curves:
    """The gap traces of all runs, in the order of the sweep."""
    curves: Curves = {}
    for variant, lam, _, run_dir in runs:
        curves.setdefault((variant, lam), []).append(read_gap_trace(run_dir))
    return curves


def trace_attributes(runs: Runs) -> Facts:
    """The attributes of the first run's gap trace: what its gaps are. All runs of a sweep have the same oracle."""
    return next((gap_trace_attributes(run_dir) for *_, run_dir in runs), {})


def certainty_of_curves(runs: Runs) -> str:
    """What the gaps of a sweep are: EXACT, UPPER_BOUNDED or ESTIMATE (`problems.capabilities`)."""
    return certainty_told(trace_attributes(runs))


def by_lambda(curves: Curves) -> dict[str, dict[str, list[Trace]]]:
    """lambda to variant to traces."""
    out: dict[str, dict[str, list[Trace]]] = {}
    for (variant, lam), traces in curves.items():
        out.setdefault(lam, {})[variant] = traces
    return out


def lambda_title(lam: str, variants: Mapping[str, Sequence[Trace]]) -> str:
    """λ as the sweep names it, with its value if the name is not a number."""
    value = f"{float(next(iter(variants.values()))[0]['lambda'][0]):.3g}"
    return f"λ = {lam} = {value}" if "/" in lam else f"λ = {value}"


def band(traces: Sequence[Trace], over: str, quantity: str = "gap", log: bool = False) -> np.ndarray:
    """Median, least and largest value of `quantity` on a common axis, (4, points): x, median, min, max.

    Interpolated logarithmically between snapshots, over the range that all runs cover. The axis of seconds is
    logarithmic too, and with `log` that of passes.
    """
    log = log or over == "seconds"
    xs = [np.asarray(trace[over], float) for trace in traces]
    ys = [np.log(np.maximum(column(trace, quantity), SMALLEST)) for trace in traces]
    known = [np.isfinite(y) & ((x > 0) if log else True) for x, y in zip(xs, ys, strict=True)]
    xs, ys = [x[k] for x, k in zip(xs, known, strict=True)], [y[k] for y, k in zip(ys, known, strict=True)]
    if min(x.size for x in xs) == 0:
        return np.empty((4, 0))
    first, last = max(x[0] for x in xs), min(x[-1] for x in xs)
    grid = np.geomspace(first, last, 300) if log else np.linspace(first, last, 300)
    values = np.exp([np.interp(grid, x, y) for x, y in zip(xs, ys, strict=True)])
    return np.stack([grid, np.median(values, axis=0), values.min(axis=0), values.max(axis=0)])


def column(trace: Trace, quantity: str) -> np.ndarray:
    """A column of a gap trace; `stale_ratio`: the solver's stale gap over the true gap; `predicted`: by how much O16 Thm. 2
    lets gap sampling improve on uniform sampling, chi(g_i)^3 / chi(C_i), nan in traces without these numbers."""
    if quantity == "stale_ratio":
        return np.asarray(trace["stale_gap"] / np.maximum(trace["gap"], SMALLEST))
    if quantity == "predicted":
        if "curvature_nonuniformity" not in trace:
            return np.full(trace["gap"].size, np.nan)
        return np.asarray(trace["nonuniformity"] ** 3 / trace["curvature_nonuniformity"])
    return np.asarray(trace[quantity])


def values_at(traces: Sequence[Trace], over: str, x: float, quantity: str = "gap") -> np.ndarray:
    """A column at `x` passes or seconds in each of the traces, interpolated logarithmically; NaN where none is finite."""
    logs = []
    for trace in traces:
        y = np.log(np.maximum(column(trace, quantity), SMALLEST))
        known = np.isfinite(y)
        logs.append(np.interp(x, trace[over][known], y[known]) if known.any() else np.nan)
    return np.exp(np.array(logs))


def value_at(traces: Sequence[Trace], over: str, x: float, quantity: str = "gap") -> float:
    """The median of `values_at`."""
    return float(np.exp(np.median(np.log(values_at(traces, over, x, quantity)))))


def first_at(trace: Trace, over: str, level: float, quantity: str = "gap") -> float:
    """Passes, calls or seconds at the first snapshot where a column is at most `level`; inf if it never is."""
    (below,) = np.nonzero(np.nan_to_num(trace[quantity], nan=np.inf) <= level)
    return float(trace[over][below[0]]) if below.size else np.inf
