"""Claims of Shah, Kolmogorov, Lampert (CVPR 2015)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.comparisons import (
    SEEDS_DIFFER,
    Measure,
    Outcome,
    alike_at_equal_work,
    better_at_equal_work,
    less_work,
    not_worse,
    stronger_than_on,
    verdict,
)
from gapwise.stages.reports.papers.measured import Finding, Measured

OCR, USPS, HORSES, STANFORD = "s15_ocr", "s15_usps", "s15_horses", "s15_stanford"
ALL = (OCR, USPS, HORSES, STANFORD)
PRIMAL = "primal_excess"


def _iterations(column: str, says: str, good: Callable[[np.ndarray], float]) -> Measure:
    """What MP-BCFW recorded of its outer iterations; `good` is more than 1 where a run is as the claim says."""

    def measure(part: Measured) -> Finding:
        outcomes = []
        for lam in part.lambdas:
            runs = [np.asarray(columns[column], float) for columns in part.iterations("MP-BCFW", lam)]
            runs = [run for run in runs if run.size >= 4]
            if runs:
                ratios = [good(run) for run in runs]
                holds = True if min(ratios) > 1.0 else False if max(ratios) < 1.0 else None
                quarters = np.median([[np.median(part) for part in np.array_split(run, 4)] for run in runs], axis=0)
                words = ", ".join(f"{value:.3g}" for value in quarters)
                said = f"λ = {lam}: {says} by quarters of the run: {words}"
                outcomes.append(Outcome(min(ratios), holds, said, SEEDS_DIFFER))
        return verdict(outcomes)

    return measure


def _stable_and_low(run: np.ndarray) -> float:
    last = run[-(run.size // 4) :]
    return min(1.1 * float(last.min() / last.max()), 0.5 * float(run.max() / last.max()))


def _quarters(run: np.ndarray) -> list[float]:
    return [float(np.median(part)) for part in np.array_split(run, 4)]


def _grown_and_stable(run: np.ndarray) -> float:
    quarters = _quarters(run)
    last = run[-(run.size // 4) :]
    growth = min(later / earlier for earlier, later in pairwise(quarters))
    return min(growth * (1.0 + 1e-9), 1.1 * float(last.min() / last.max()))


def _grows_slowly(run: np.ndarray) -> float:
    first, *_, last = _quarters(run)
    growth = last / max(first, 1e-9)
    return min(growth, 10.0 / max(growth, 1e-9))


CLOCK = "; here counted operations end them, with S15 a clock"
"""Of claims about the number of approximate passes."""
CLAIMS = (
    Claim(
        "lower_primal", "S15 4.1, Fig. 4", "MP-BCFW always achieves lower primal suboptimality than BCFW",
        "primal suboptimality after equally many iterations, at the end",
        ALL, better_at_equal_work("MP-BCFW", "BCFW", PRIMAL, "passes"),
    ),
    Claim(
        "averaged", "S15 4.1, Fig. 4", "Similarly, MP-BCFW-avg improves over BCFW-avg",
        "primal suboptimality of both averages after equally many iterations, at the end",
        ALL, better_at_equal_work("MP-BCFW-avg", "BCFW-avg", PRIMAL, "passes"),
    ),
    Claim(
        "stronger_than_usps", "S15 4.1, Fig. 4", "This effect is stronger for OCR, HorseSeg and Stanford than for USPS",
        "ratio of the primal suboptimalities of BCFW and MP-BCFW after equally many iterations at λ = 1/n: less on USPS",
        ALL, better_at_equal_work("MP-BCFW", "BCFW", PRIMAL, "passes", lambdas=("1/n",)), stronger_than_on(USPS),
    ),
    Claim(
        "fewer_iterations", "S15 5", "MP-BCFW always requires fewer iterations to reach a certain solution quality",
        "iterations to the finest primal accuracy that both reach",
        ALL, less_work("MP-BCFW", "BCFW", PRIMAL, "passes"),
    ),
    Claim(
        "usps_not_slower", "S15 4.1", "even for USPS, MP-BCFW is not slower than BCFW, either",
        "primal suboptimality after equal seconds, at the end",
        (USPS,), not_worse("MP-BCFW", "BCFW", PRIMAL, "seconds"),
    ),
    Claim(
        "usps_runtime", "S15 4.1, Fig. 5", "the better oracle convergence did not translate to actually faster convergence",
        "primal suboptimality after equal seconds at λ = 1/n: within a factor of two",
        (USPS,), alike_at_equal_work("MP-BCFW", "BCFW", PRIMAL, "seconds", ("1/n",)),
    ),
    Claim(
        "ocr_runtime", "S15 4.1, Fig. 5", "the difference between single-plane and multi-plane methods is small",
        "primal suboptimality after equal seconds at λ = 1/n: within a factor of two",
        (OCR,), alike_at_equal_work("MP-BCFW", "BCFW", PRIMAL, "seconds", ("1/n",)),
    ),
    Claim(
        "horses_runtime", "S15 4.1, Fig. 5", "MP-BCFW and MP-BCFW-avg converge substantially faster than BCFW and BCFW-avg",
        "seconds of MP-BCFW and BCFW to the finest primal accuracy that both reach",
        (HORSES, STANFORD), less_work("MP-BCFW", "BCFW", PRIMAL, "seconds"),
    ),
    Claim(
        "usps_planes", "S15 4.2, Fig. 6", "for USPS the number of planes and iterations remain small through the runtime",
        "mean planes a block, at most 3 in nine of ten iterations", (USPS,),
        _iterations("planes", "planes", lambda run: 3.0 / float(np.quantile(run, 0.9))),
    ),
    Claim(
        "usps_passes", "S15 4.2, Fig. 6", "for USPS the number of planes and iterations remain small through the runtime",
        "approximate passes an iteration, at most 3 in nine of ten iterations" + CLOCK, (USPS,),
        _iterations("approximate_passes", "passes", lambda run: 3.0 / max(float(np.quantile(run, 0.9)), 1e-9)),
    ),
    Claim(
        "ocr_planes", "S15 4.2, Fig. 6",
        "initially identifies several relevant planes, but this number is reduced for later",
        "mean planes a block: the most in the first half of a run over 1.1 times the last iteration's", (OCR,),
        _iterations("planes", "planes", lambda run: float(run[: run.size // 2].max() / run[-1]) / 1.1),
    ),
    Claim(
        "ocr_passes", "S15 4.2, Fig. 6", "number of approximate passes per iteration ranges between 10 to 15",
        "median of approximate passes an iteration, between 10 and 15" + CLOCK, (OCR,),
        _iterations(
            "approximate_passes", "passes",
            lambda run: min(float(np.median(run)) / 10.0, 15.0 / max(float(np.median(run)), 1e-9)) * (1.0 + 1e-9),
        ),
    ),
    Claim(
        "horses_planes", "S15 4.2, Fig. 6", "the number of relevant planes stabilizes at a low value",
        "mean planes a block in the last quarter of a run: within a tenth, and at most half of the most", (HORSES,),
        _iterations("planes", "planes", _stable_and_low),
    ),
    Claim(
        "stanford_planes", "S15 4.2, Fig. 6", "For Stanford, the working set grows steadily to reach a stable state",
        "mean planes a block: by quarters of a run no less, and in the last quarter within a tenth", (STANFORD,),
        _iterations("planes", "planes", _grown_and_stable),
    ),
    Claim(
        "stanford_passes", "S15 4.2, Fig. 6", "the number of approximate passes grows slowly during the course",
        "median of approximate passes an iteration, the last quarter of a run over the first: from 1 to 10" + CLOCK,
        (STANFORD,),
        _iterations("approximate_passes", "passes", _grows_slowly),
    ),
    Claim(
        "horses_passes", "S15 4.2, Fig. 6", "the number of approximate passes grows quickly to several hundred",
        "the most approximate passes of an iteration in the last half, over 200" + CLOCK, (HORSES,),
        _iterations("approximate_passes", "passes", lambda run: float(run[run.size // 2 :].max()) / 200.0),
    ),
)  # fmt: skip
