"""How far runs are from the optimum (LJ13 Fig. 1).

Nobody knows the optimum. Primal suboptimality is P minus the largest D of any run at that lambda, dual suboptimality the
least P of any run minus D: bounds from above, which level off at the smallest gap that was reached. So the primal points of
methods without a dual point are bounded as well. An approximate oracle without a bound may miss maximisers, so its P are
estimates from below. They may be below D, which is true all the same.
"""

from __future__ import annotations

import numpy as np

from gapwise.stages.problems.capabilities import ESTIMATE, EXACT
from gapwise.stages.reports.curves import Curves, Runs, Trace, by_lambda, certainty_of_curves, read_curves


def read_suboptimality(runs: Runs) -> Curves:
    """The gap traces of all runs, in the order of the sweep, `with_suboptimality`."""
    return with_suboptimality(read_curves(runs), certainty_of_curves(runs))


def with_suboptimality(curves: Curves, certainty: str = EXACT) -> Curves:
    """The traces with three more columns, `best_dual`, `primal_excess` and `dual_lack`.

    Parameters
    ----------
    curves
        Gap traces.
    certainty : str
        What their gaps are (`problems.capabilities`). If ESTIMATE, `primal_excess` is nan where P is below the largest D.

    Raises
    ------
    ValueError
        If a dual value is above a primal value at the same lambda, so that one of the two is wrong: names both variants.
        Not for estimates.
    """
    curves_to_best: Curves = {}
    for lam, variants in by_lambda(curves).items():
        dual, whose_dual = max((_most(trace, "dual"), name) for name, traces in variants.items() for trace in traces)
        primal, whose = min(
            (-_most(trace, "primal", -1), name) for name, traces in variants.items() for trace in traces
        )
        estimated = certainty == ESTIMATE
        if dual > primal + 1e-9 * abs(primal) and not estimated:
            raise ValueError(
                f"lambda {lam}: {whose_dual} has a dual value of {dual:.12g}, above the primal value {primal:.12g} of "
                f"{whose}; no dual value can be, so one of them is wrong"
            )
        for variant, traces in variants.items():
            curves_to_best[variant, lam] = [
                {
                    **t,
                    "best_dual": np.full(t["dual"].shape, dual),
                    "primal_excess": np.where(estimated & (t["primal"] < dual), np.nan, t["primal"] - dual),
                    "dual_lack": max(primal, dual) - t["dual"],
                }
                for t in traces
            ]
    return {key: curves_to_best[key] for key in curves}


def _most(trace: Trace, name: str, sign: int = 1) -> float:
    """The largest value of a column, or of its negative; -inf where it has none."""
    values = sign * np.asarray(trace[name], float)
    return float(np.max(values[np.isfinite(values)], initial=-np.inf))


def best_dual(trace: Trace) -> float:
    """The largest known dual value at its lambda, of a trace with suboptimalities."""
    return float(trace["best_dual"][0])
