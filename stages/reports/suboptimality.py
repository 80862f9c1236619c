"""How far runs are from the optimum, and the oracle calls and seconds they need to get near it (LJ13 Fig. 1 and Table 1).

Nobody knows the optimum. Primal suboptimality is P minus the largest D of any run at that lambda, dual suboptimality the
least P of any run minus D: bounds from above, which level off at the smallest gap that was reached. So the primal points of
methods without a dual point are bounded as well. An approximate oracle without a bound may miss maximisers, so its P are
estimates from below. They may be below D, which is true all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from gapwise.records import Record
from gapwise.stages.problems.certainty import ESTIMATE, EXACT
from gapwise.stages.reports.curves import Curves, Trace, by_lambda, first_at
from gapwise.stages.reports.tables import markdown

LEVELS = (1.0, 0.1, 0.01, 0.001)
"""Accuracies as shares of the largest dual value that is known."""
SHOWN_GAP = 0.01
"""The one for which tables show the gap as well."""
MEASURES = {"primal": "P − D*", "gap": "P − D"}
"""What has to be below a level: the primal suboptimality, and the duality gap, which the method itself could certify."""
OURS = "accelerated"
"""The method that goes beyond the papers and is set against the best of the others."""
RATES: Mapping[str, tuple[str, str, str]] = {
    "fw": ("gap", "n R²/(λε)", "LJ13"),
    "bcfw": ("expected gap", "R²/(λε)", "LJ13 Thm. 3"),
    "bcfw_nols": ("expected gap", "R²/(λε)", "LJ13 Thm. 3"),
    "bcfw_wavg": ("expected gap", "R²/(λε)", "LJ13 Thm. 3"),
    "ssg": ("expected primal error", "R²/(λε) log(R²/(λε))", "Shalev-Shwartz et al."),
    "ssg_wavg": ("expected primal error", "R²/(λε)", "LJ13 5"),
    "cutting_plane": ("gap", "n R²/(λε)", "Joachims et al. 2009"),
    "eg": ("expected dual error", "(n + log #Y) R²/(λε)", "Collins et al. 2008"),
    "mpbcfw": ("expected gap", "R²/(λε)", "as BCFW: S15"),
}
"""What is guaranteed to be below epsilon, after how many oracle calls, and by whom, up to constants and minor terms, as in
LJ13's Table 1: R is the largest norm of a psi_i(y), #Y the number of labellings. The oracle of `eg` computes expectations.
Others have no such bound."""
Row = Record


def with_suboptimality(curves: Curves, certainty: str = EXACT) -> Curves:
    """The traces with three more columns, `best_dual`, `primal_excess` and `dual_lack`.

    Parameters
    ----------
    curves
        Gap traces.
    certainty : str
        What their gaps are (`problems.certainty`). If ESTIMATE, `primal_excess` is nan where P is below the largest D.

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


def calls_table(curves: Curves) -> list[Row]:
    """One row per variant and lambda: median, least and largest oracle calls and seconds to each of `LEVELS`, over seeds.

    `curves` have suboptimalities. A column is named ``<measure> calls <level>`` or ``<measure> seconds <level>``. The median
    is the upper one, and infinite where half of the seeds do not get there; `calls` and `seconds` are those of whole runs.
    """
    rows: list[Row] = []
    for (variant, lam), traces in curves.items():
        runs = pd.DataFrame([_of_run(trace) for trace in traces])
        row: Row = {"variant": variant, "lambda": lam, "value": float(traces[0]["lambda"][0]), "seeds": len(traces)}
        for name in runs:
            values = runs[name]
            row[name] = float(values.quantile(interpolation="higher"))
            if name not in ("calls", "seconds", "test_loss"):
                row |= {f"{name} least": float(values.min()), f"{name} most": float(values.max())}
        rows.append(row)
    return rows


def best_dual(trace: Trace) -> float:
    """The largest known dual value at its lambda, of a trace with suboptimalities."""
    return float(trace["best_dual"][0])


def _of_run(trace: Trace) -> Row:
    """Of one run: calls and seconds to each level, those it spent, and its last test loss."""
    best = best_dual(trace)
    row: Row = {"calls": float(trace["oracle_calls"][-1]), "seconds": float(trace["seconds"][-1])}
    row["test_loss"] = float(trace["test_loss"][-1]) if "test_loss" in trace else np.nan
    for measure, column in (("primal", "primal_excess"), ("gap", "gap")):
        for level in LEVELS:
            for name, over in (("calls", "oracle_calls"), ("seconds", "seconds")):
                row[f"{measure} {name} {level:g}"] = first_at(trace, over, level * best, column)
    return row


def calls_lines(table: Sequence[Row]) -> list[str]:
    """For each lambda the table in Markdown, theory beside measurement, and who wins."""
    text: list[str] = []
    for lam in dict.fromkeys(row["lambda"] for row in table):
        rows = [row for row in table if row["lambda"] == lam]
        seeds = max(row["seeds"] for row in rows)
        name = f"λ = {lam} = {rows[0]['value']:.3g}" if "/" in lam else f"λ = {lam or format(rows[0]['value'], 'g')}"
        of_seeds = f"medians of {seeds} seeds" if seeds > 1 else "one seed"
        text += ["", f"{name}, {of_seeds}. Oracle calls and seconds to an accuracy of ε D*:", ""]
        heads = [f"{MEASURES['primal']} ≤ {level:g}" for level in LEVELS] + [f"{MEASURES['gap']} ≤ {SHOWN_GAP:g}"]
        cells = [["solver", "below ε", "calls in theory", *heads, "in all", "test loss"]]
        for row in rows:
            guarantee, rate, _ = RATES.get(row["variant"], ("–", "–", ""))
            asked = [("primal", level) for level in LEVELS] + [("gap", SHOWN_GAP)]
            loss = f"{row['test_loss']:.4g}" if np.isfinite(row["test_loss"]) else "–"
            spent = f"{row['calls']:,.0f}, {row['seconds']:.3g} s"
            cells.append([row["variant"], guarantee, rate, *(_cell(row, *key) for key in asked), spent, loss])
        text += [*markdown(cells), "", *winners(rows)]
    return text


def _cell(row: Row, measure: str, level: float) -> str:
    calls, seconds = (row[f"{measure} {name} {level:g}"] for name in ("calls", "seconds"))
    return f"{calls:,.0f}, {seconds:.3g} s" if np.isfinite(calls) else "–"


def winners(rows: Sequence[Row]) -> list[str]:
    """Per accuracy a line: the fewest calls and seconds to it, and those of `OURS` beside the best of the others."""
    text = []
    for level in LEVELS:
        said = []
        for name in ("calls", "seconds"):
            column = f"primal {name} {level:g}"
            order = sorted((row for row in rows if np.isfinite(row[column])), key=lambda row: row[column])
            if not order:
                continue
            form = ",.0f" if name == "calls" else ".3g"
            words = f"fewest {name}: {order[0]['variant']} ({order[0][column]:{form}})"
            mine, others = ([row for row in order if (row["variant"] == OURS) == ours] for ours in (True, False))
            if mine and not others:
                words += "; no other gets there"
            elif mine and min(mine[0][column], others[0][column]) > 0.0:  # not where somebody begins
                times, best = others[0][column] / mine[0][column], others[0]["variant"]
                words += (
                    f"; {OURS} needs 1/{times:.2g} of" if times >= 1.0 else f"; {OURS} needs {1.0 / times:.2g} times"
                )
                words += f" those of {best}"
            said.append(words)
        text.append(f"- to {level:g}: {'. '.join(said) if said else 'nobody gets there'}.")
    return text
