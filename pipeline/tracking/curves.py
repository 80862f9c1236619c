"""A run's metrics in MLflow, with steps that mean the same in every run, so that charts of several runs overlay.

===================  ==================================================================================================
name                 step
===================  ==================================================================================================
without a slash      0, one number a run: the headline
vs_lambda/…          lambda: ONE + 100 log10 lambda. A path is read off every EVERY steps; given lambdas stay where they are
vs_passes/…          the work so far: hundredths of an effective pass. One point for each exact gap pass
vs_solved/…          the number of the lambda
with_best_lambda/…   0: losses and measures at the best lambda, before a refit
with_refit/…         0: those of the model trained again on all training examples, with its lambda and gap
===================  ==================================================================================================

The headline is logged first and its names sort first, because MLflow lists metrics in one of these orders.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.certify.verdict import Verdict, read_verdict, verdict_of
from gapwise.stages.solver.counts import CERTIFIED
from gapwise.storage.backend import Location
from gapwise.storage.format import measures_of
from gapwise.storage.mixture import Mixture

ONE = 1000
"""The step of lambda = 1; MLflow's charts leave out negative steps when zoomed."""
EVERY = 10
"""Steps between two points of a path: ten to a factor of ten. MLflow samples curves of more than 320 points, each run's on
its own, so this draws those of every path at the same lambdas."""
HUNDREDTH = 100
"""Steps per effective pass."""


class MetricValue(NamedTuple):
    """One value of a metric."""

    name: str
    value: float
    timestamp: int
    """Milliseconds."""
    step: int


def lambda_step(lam: float) -> int:
    """The step of a lambda > 0."""
    return ONE + round(100.0 * math.log10(lam))


def headline(result: Facts, stamp: int) -> Iterator[MetricValue]:
    """What a comparison begins with, and the measures at the best lambda."""
    path, best, verdict = result["path"], result["evaluate"], verdict_of(result["verdict"])
    numbers = {
        "best_test_loss": measures_of(result)["test_loss"],
        "best_lambda": best["best_lambda"],
        **({"best_validation_loss": best["validation_loss"]} if "validation_loss" in best else {}),
        **({"certified_gap": verdict.largest_gap} if verdict.bounded and verdict.largest_gap is not None else {}),
        "passes": sum(record["effective_passes"] for record in path),
        "oracle_calls": sum(record["oracle_calls"] for record in path),
        "seconds": sum(record["seconds"] for record in path),
    }
    for folder, measures in (("with_best_lambda", best), ("with_refit", result.get("refit") or {})):
        for name, value in measures.items():
            measure = name.startswith(("train_", "test_", "validation_")) or name in ("lambda", "gap")
            if measure and type(value) in (int, float):
                numbers[f"{folder}/{name}"] = value
    return (MetricValue(name, float(value), stamp, 0) for name, value in numbers.items())


def convergence(trace: Facts) -> Iterator[MetricValue]:
    """One point per exact gap pass of the solve, over the passes made so far.

    Parameters
    ----------
    trace : mapping of str to array, each (rows,)
        See `gapwise.pipeline.tracking.view.project`.
    """
    stamps = [int(stamp) for stamp in trace.get("timestamp_ms", ())]
    steps = [round(HUNDREDTH * float(passes)) for passes in trace.get("passes", ())]
    for name in ("gap", "lambda"):
        for value, stamp, step in zip(trace.get(name, ()), stamps, steps, strict=False):
            yield MetricValue(f"vs_passes/log10_{name}", _log10(value), stamp, step)
    for value, stamp, step in zip(trace.get(CERTIFIED, ()), stamps, steps, strict=False):
        yield MetricValue("vs_passes/log10_every_lambda_within", _log10(value), stamp, step)
    for name in ("passes", "oracle_calls", "seconds", "dual", "primal"):
        for value, stamp, step in zip(trace.get(name, ()), stamps, steps, strict=False):
            yield MetricValue(f"vs_passes/{name}", float(value), stamp, step)


def breakpoints(path: Sequence[Facts], stamps: Sequence[int]) -> Iterator[MetricValue]:
    """What each solved lambda was and cost; `stamps`: when each was solved, in ms."""
    for j, (record, stamp) in enumerate(zip(path, stamps, strict=True)):
        for name in ("lambda", "gap"):
            yield MetricValue(f"vs_solved/log10_{name}", _log10(record[name]), stamp, j)
        for name in ("effective_passes", "seconds"):
            yield MetricValue(f"vs_solved/{name.removeprefix('effective_')}", float(record[name]), stamp, j)


def over_lambda(run_dir: Location, stamp: int) -> Iterator[MetricValue]:
    """Losses, measures of the test split, the certified gap and the work so far as curves over lambda."""
    from gapwise.stages.reports.stored import read_numbers

    arrays, attrs = read_numbers(run_dir)
    lams = grid(arrays)
    curves: dict[str, list[float]] = {"vs_lambda/log10_lambda": np.log10(lams).round(12).tolist()}
    gaps = _gaps(arrays, attrs, read_verdict(run_dir, arrays, attrs), lams)
    if gaps is not None:
        curves["vs_lambda/certified_gap"] = gaps
    for name in ("effective_passes", "seconds"):
        spent = [float(np.sum(arrays[name][arrays["lambda"] >= lam * (1.0 - 1e-9)])) for lam in lams]
        curves[f"vs_lambda/{name.removeprefix('effective_')}"] = spent
    names = sorted(name for name in arrays if name in ("train_loss", "validation_loss") or name.startswith("test_"))
    mixture = Mixture(arrays, attrs)
    for name in names:
        sources = _sources(arrays, mixture, lams, name)
        values = [math.nan if where is None else float(arrays[where[0]][where[1]]) for where in sources]
        curves[f"vs_lambda/{name}"] = values
    steps = [lambda_step(float(lam)) for lam in lams]
    for name, values in curves.items():
        for step, value in zip(steps, values, strict=True):
            yield MetricValue(name, float(value), stamp, step)


def grid(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where curves are read: of a path every `EVERY` steps from its first lambda to its last, else the solved lambdas."""
    lams = np.unique(arrays["lambda"])[::-1]
    if "cell_low" not in arrays:
        return lams
    tenth = 100.0 / EVERY
    first = math.floor(tenth * math.log10(lams[0]) + 1e-9)
    last = math.ceil(tenth * math.log10(lams[-1]) - 1e-9)
    lambdas = 10.0 ** (np.arange(first, last - 1, -1) / tenth)
    lambdas = lambdas[lambdas >= float(arrays["cell_low"][-1])]
    return lambdas if lambdas.size else lams[:1]


def _gaps(
    arrays: Mapping[str, np.ndarray], attrs: Mapping[str, object], verdict: Verdict, lams: np.ndarray
) -> list[float] | None:
    """Bounds on the gap at `lams`; None where nothing bounds it there."""
    if not verdict.bounded:
        return None
    if "cell_low" not in arrays:
        gap_of = dict(zip(arrays["lambda"].tolist(), arrays["gap"].tolist(), strict=True))
        return [gap_of[lam] for lam in lams.tolist()]
    if not verdict.of_path:
        return None
    from gapwise.stages.solver.path.rules import path_rule

    return list(np.asarray(path_rule(str(attrs["rule"])).bound(arrays, attrs, lams), float).tolist())


def _sources(
    arrays: Mapping[str, np.ndarray], mixture: Mixture, lams: np.ndarray, measure: str
) -> list[tuple[str, int] | None]:
    """Where a measure of each of `lams` stands in `arrays`: (the array's name, index); None for w = 0.

    Scaling w changes no labelling, so where w(lambda) is a multiple of one breakpoint's w the measure is exactly that
    breakpoint's. Where it mixes two, it is that of the nearest lambda at which it was taken.
    """
    from gapwise.storage.layout import EVALUATED

    prefix = EVALUATED if f"{EVALUATED}lambda" in arrays else ""
    taken = np.flatnonzero(~np.isnan(arrays[f"{prefix}{measure}"]))
    logs = np.log(arrays[f"{prefix}lambda"][taken])
    sources: list[tuple[str, int] | None] = []
    for lam in lams.tolist():
        shares = [b for b, share in mixture(lam).items() if share != 0.0 and 0 <= b < arrays["lambda"].size]
        nearest = f"{prefix}{measure}", int(taken[np.argmin(np.abs(logs - math.log(lam)))])
        sources.append(None if not shares else (measure, shares[0]) if len(shares) == 1 else nearest)
    return sources


def _log10(value: float) -> float:
    return math.log10(value) if value > 0 else math.nan
