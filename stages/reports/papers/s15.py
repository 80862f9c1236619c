"""Claims of Shah, Kolmogorov, Lampert (CVPR 2015)."""

from __future__ import annotations

import numpy as np

from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured, better_at_equal_work, verdict

ALL = ("s15_ocr", "s15_usps", "s15_horses")


def _more_approximate_passes_later(part: Measured) -> Finding:
    """Approximate passes an outer iteration, the second half of a run against the first."""
    ratios, words = [], []
    for lam in part.lambdas:
        halves = []
        for columns in part.iterations("MP-BCFW", lam):
            passes = np.asarray(columns["approximate_passes"], float)
            half = passes.size // 2
            if half:
                halves.append((passes[:half].mean(), passes[half:].mean()))
        if halves:
            early, late = np.median(np.array(halves), axis=0)
            ratios.append(late / max(early, 1e-9))
            words.append(f"λ = {lam}: {early:.1f} in the first half of a run, {late:.1f} in the second")
    return verdict(ratios, words)


CLAIMS = (
    Claim(
        "fewer_exact_calls", "S15 4, Fig. 4", "MP-BCFW has a smaller dual suboptimality than BCFW after equal exact calls.",
        ALL, better_at_equal_work("MP-BCFW", "BCFW", "dual_lack", "passes"),
    ),
    Claim(
        "smaller_gap", "S15 4, Fig. 4", "It has a smaller duality gap after equal exact calls.",
        ALL, better_at_equal_work("MP-BCFW", "BCFW", "gap", "passes"),
    ),
    Claim(
        "faster", "S15 4, Fig. 5", "Where the oracle takes most of the time, it has a smaller gap after equal time, too.",
        ("s15_horses",), better_at_equal_work("MP-BCFW", "BCFW", "gap", "seconds"),
    ),
    Claim(
        "averaging_helps", "S15 4", "Two-track averaging lowers the primal suboptimality of MP-BCFW at equal calls.",
        ALL, better_at_equal_work("MP-BCFW-avg", "MP-BCFW", "primal_excess", "passes"),
    ),
    Claim(
        "more_passes_later", "S15 4, Fig. 6", "The slope rule makes more approximate passes late in a run than early.",
        ALL, _more_approximate_passes_later,
    ),
)  # fmt: skip
