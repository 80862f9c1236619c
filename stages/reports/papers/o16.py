"""Claims of Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (ICML 2016)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from gapwise.stages.reports.curves import SMALLEST, column, first_at, values_at
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.comparisons import (
    ALONE,
    CLOSE,
    SEEDS_DIFFER,
    Measure,
    Outcome,
    amount,
    better_at_equal_work,
    comparable,
    decided,
    neither_always,
    not_worse,
    on_one_part,
    spread,
    stronger_at_larger_lambda,
    undecided,
    verdict,
)
from gapwise.stages.reports.papers.measured import Finding, Measured

OCR, CONLL, HORSES, LSP = "o16_fig3", "o16_fig5_conll", "o16_fig5_horses", "o16_fig5_lsp"
FAMILY = (OCR, CONLL, HORSES, LSP)
LONG = "o16_fig3_long"
"""Has the members without a cache."""
SMALL = 0.1
"""Gaps are small once one is below this share of D*."""
STALLED = 1.25
"""A gap that falls by less in half of a run does not converge."""
UNDERESTIMATED = 1.5
"""A gap that is this many times its estimate is significantly underestimated."""
PATHS = ("o16_fig4", "o16_fig8_horses", "o16_fig8_ocr_large", "o16_fig4_usps")


def _given_constants(part: Measured) -> Finding:
    """F = 0.25, nu = 0.01 beside the best of the grid, after equal passes: within a factor of three."""
    outcomes = []
    for lam in part.lambdas:
        names = [name for name in part.variants if re.fullmatch(r"F=\S+ nu=\S+", name)]
        x = min(float(trace["passes"][-1]) for name in names for trace in part.traces(name, lam))
        gaps = {name: values_at(part.traces(name, lam), "passes", x) for name in names}
        if "F=0.25 nu=0.01" not in gaps:
            raise KeyError("F=0.25 nu=0.01")
        best = min(gaps, key=lambda name: float(np.median(gaps[name])))
        mine = gaps["F=0.25 nu=0.01"]
        words = f"λ = {lam}: {spread(mine)}, the best ({best}) {spread(gaps[best])}, after {x:.3g} passes"
        ratio = 3.0 * float(np.median(gaps[best]) / np.median(mine))
        outcomes.append(Outcome(ratio, ratio > 1.0, words))
    return verdict(outcomes)


def _never_refreshed(part: Measured) -> Finding:
    """The gap without exact passes falls by less than a factor of `STALLED` in the second half of the passes."""
    outcomes = []
    for lam in part.lambdas:
        x = min(float(trace["passes"][-1]) for name in ("never", "every 10") for trace in part.traces(name, lam))
        falls, words = {}, []
        for name in ("never", "every 10"):
            half, late = (values_at(part.traces(name, lam), "passes", share * x) for share in (0.5, 1.0))
            falls[name] = half / late
            words.append(f"{name} {spread(half)} half way, {spread(late)} at the end")
        never = falls["never"]
        holds = True if never.max() < STALLED else False if never.min() >= STALLED else None
        ratio = STALLED / float(np.median(never))
        said = f"λ = {lam}: {', '.join(words)}, after {x:.3g} passes"
        outcomes.append(Outcome(ratio, holds, said, SEEDS_DIFFER))
    return verdict(outcomes)


def _underestimated(part: Measured) -> Finding:
    """The true gap over the sum of the known gaps at the end, without exact passes: over `UNDERESTIMATED`, and with exact
    passes less."""
    outcomes = []
    for lam in part.lambdas:
        share = {
            name: np.array([1.0 / max(column(trace, "stale_ratio")[-1], SMALLEST) for trace in part.traces(name, lam)])
            for name in ("never", "every 10")
        }
        never, most = share["never"], max(UNDERESTIMATED, float(share["every 10"].max()))
        holds = True if never.min() > most else False if never.max() <= UNDERESTIMATED else None
        words = f"λ = {lam}: {spread(never)} without exact passes, {spread(share['every 10'])} with one every 10"
        outcomes.append(Outcome(float(np.median(never)) / UNDERESTIMATED, holds, words, SEEDS_DIFFER))
    return verdict(outcomes, sometimes=True)


def _insensitive(part: Measured) -> Finding:
    """The gap with an exact pass every 5, 10 and 20 passes: within a factor of two of each other."""
    outcomes = []
    for lam in part.lambdas:
        names = [name for name in ("every 5", "every 10", "every 20") if name in part.variants]
        x = min(float(trace["passes"][-1]) for name in names for trace in part.traces(name, lam))
        gaps = {name: float(np.median(values_at(part.traces(name, lam), "passes", x))) for name in names}
        words = ", ".join(f"{name} {gap:.2g}" for name, gap in gaps.items())
        finding = comparable(max(gaps.values()), min(gaps.values()), f"λ = {lam}: {words} after {x:.3g} passes")
        outcomes.append(Outcome(finding.ratio or np.nan, finding.holds, finding.measured))
    return verdict(outcomes)


def _family(
    name: str, quote: str, judged: str, pairs: Mapping[str, str], over: str = "passes", small: float = np.inf
) -> list[Claim]:
    """Members of the family against others after equal passes or seconds: a claim for each of `pairs`."""
    return [
        Claim(
            f"{name}_{ours}", "O16 5.1", quote, f"{judged}: {ours} against {theirs} after equal {over}, at the end",
            FAMILY if "cache" in ours else (OCR, LONG, *FAMILY[1:]),
            better_at_equal_work(ours, theirs, over=over, small=small),
        )
        for ours, theirs in pairs.items()
    ]  # fmt: skip


def _total(part: Measured, name: str, column: str = "effective_passes") -> float:
    return float(np.sum(part.path(name)[column]))


def _fewer_passes(ours: str, theirs: str, seconds: bool = False) -> Measure:
    """Fewer passes, and if `seconds` less time, too."""

    def measure(part: Measured) -> Finding:
        passes, time = (
            [_total(part, name, over) for name in (ours, theirs)] for over in ("effective_passes", "seconds")
        )
        texts = f"{passes[0]:,.1f} against {passes[1]:,.1f} passes", f"{time[0]:.2g} against {time[1]:.2g} s"
        pairs = [passes, time] if seconds else [passes]
        decisions = [decided(np.array([less]), np.array([more])) for less, more in pairs]
        one = verdict([Outcome(*decision, "", CLOSE) for decision in decisions])
        return replace(one, measured=", ".join(texts))

    return measure


def _passes_of_both(ours: str, theirs: str) -> Measure:
    """Nothing is claimed of one data set; the ratio is more than 1 if `ours` takes fewer passes."""

    def measure(part: Measured) -> Finding:
        mine, other = _total(part, ours), _total(part, theirs)
        return Finding(
            None, f"{mine:,.1f} against {other:,.1f} passes", other / mine, "judged on all data sets together"
        )

    return measure


def _local_dominates(part: Measured) -> Finding:
    """The best with a dominating local component against the best with the global component alone."""
    local = [f"F={F} nu={nu}" for F in ("0.1", "0.25") for nu in ("0", "0.01")]
    alone = [f"F=0 nu={nu}" for nu in ("0.01", "0.1", "1")]
    outcomes = []
    for lam in part.lambdas:
        traces = {name: part.traces(name, lam) for name in (*local, *alone)}
        x = min(float(trace["passes"][-1]) for some in traces.values() for trace in some)
        gaps = {name: values_at(some, "passes", x) for name, some in traces.items()}
        mine, other = (min(names, key=lambda name: float(np.median(gaps[name]))) for names in (local, alone))
        words = f"λ = {lam}: {mine} {spread(gaps[mine])}, {other} {spread(gaps[other])}, after {x:.3g} passes"
        outcomes.append(Outcome(*decided(gaps[mine], gaps[other]), words, undecided(gaps[mine], gaps[other])))
    return verdict(outcomes)


def _comparable_passes(ours: str, theirs: str, factor: float) -> Measure:
    def measure(part: Measured) -> Finding:
        mine, other = _total(part, ours), _total(part, theirs)
        return comparable(mine, other, f"{mine:,.1f} against {other:,.1f} passes", factor)

    return measure


def _kappas(judge: Callable[[Mapping[float, float]], float]) -> Measure:
    """Passes of the certified path by kappa, of both solvers; `judge` is more than 1 where they are as the claim says."""

    def measure(part: Measured) -> Finding:
        outcomes = []
        for solver in ("bcfw_gap", "bcpfw_gap_cache"):
            passes = {
                float(match[1]): _total(part, name)
                for name in part.variants
                if (match := re.fullmatch(rf"{solver} kappa=(\S+)", name))
            }
            if not passes:
                raise KeyError(f"{solver} kappa=…")
            words = ", ".join(f"κ = {kappa:g}: {spent:,.1f}" for kappa, spent in sorted(passes.items()))
            ratio = judge(passes)
            outcomes.append(Outcome(ratio, ratio > 1.0, f"{solver}: passes with {words}"))
        return verdict(outcomes)

    return measure


def _alike(passes: Mapping[float, float]) -> float:
    return 2.0 * min(passes.values()) / max(passes.values())


def _slower_ends(passes: Mapping[float, float]) -> float:
    """The lesser of the passes at both ends over `ALONE` times the least between 0.5 and 0.95."""
    middle = [spent for kappa, spent in passes.items() if 0.5 <= kappa <= 0.95]
    return min(passes[min(passes)], passes[max(passes)]) / min(middle) / ALONE


def _toy(part: Measured) -> Finding:
    """Calls until the gap is 1e-9, those of exact passes counted: gap sampling against uniform sampling."""
    n, classes = (int(part.summary["common"][f"dataset.{name}"]) for name in ("n", "classes"))
    (lam,) = part.lambdas

    def calls(name: str) -> float:
        return float(np.median([first_at(trace, "oracle_calls", 1e-9) for trace in part.traces(name, lam)]))

    uniform, exact, stale = (calls(name) for name in ("uniform", "gap", "gap_without_exact_passes"))
    text = (
        f"n = {n}, K = {classes}: {amount(uniform, 'oracle_calls')} by uniform sampling (n(K − 1) = {n * (classes - 1):,}), "
        f"{exact:,.0f} by gap sampling with an exact pass every pass, {stale:,.0f} without any"
    )
    ratio = min(uniform / gap / (min(n, classes) / 5.0) for gap in (exact, stale))
    return Finding(ratio > 1.0, text, ratio)


def _as_uniform(part: Measured) -> Finding:
    """Calls until the gap is 1e-9 by fixed probabilities: as many as by uniform sampling."""
    (lam,) = part.lambdas
    calls = {
        name: float(np.median([first_at(trace, "oracle_calls", 1e-9) for trace in part.traces(name, lam)]))
        for name in ("lipschitz", "uniform")
    }
    words = f"{amount(calls['lipschitz'], 'oracle_calls')} against {calls['uniform']:,.0f} by uniform sampling"
    return comparable(calls["lipschitz"], calls["uniform"], words, 1.25)


FASTER = "gap sampling always leads to faster convergence"
BOTH = "faster convergence (both in terms of time and the number of effective passes)"
CACHED = "caching always helps in terms of number of effective passes"
PAIRWISE = "pairwise steps (BCPFW) lead to an improvement to get smaller values of duality gaps"
CLAIMS = (
    Claim(
        "never_refreshed", "O16 3.1, Fig. 1", "the algorithm does not converge",
        "gap of gap sampling without any exact pass: it falls by less than a quarter in the second half of 600 passes",
        ("o16_fig1_long",), _never_refreshed,
    ),
    Claim(
        "underestimated", "O16 3.1, Fig. 1 (b)", "the gap becomes significantly underestimated",
        "true gap over the sum of the known gaps at the end: without any exact pass over 1.5, and less with one every 10",
        ("o16_fig1_long",), _underestimated,
    ),
    Claim(
        "refreshed_each_pass", "O16 3.1, Fig. 1", "the algorithm wastes too many computations and converges slowly",
        "gap after equal passes: an exact pass every 10 passes against one every pass",
        ("o16_fig1",), better_at_equal_work("every 10", "every 1"),
    ),
    Claim(
        "refresh_insensitive", "O16 3.1, Fig. 1",
        "Between the two extremes, the method is not very sensitive to the parameter",
        "gap after equal passes with an exact pass every 5, 10 and 20 passes: within a factor of two",
        ("o16_fig1",), _insensitive,
    ),
    Claim(
        "adaptive", "O16 3.1, Fig. 1", "to BCFW with uniform sampling, we observe a faster convergence",
        "gap after equal passes: gap sampling with an exact pass every 10 passes against uniform sampling",
        ("o16_fig1",), better_at_equal_work("every 10", "uniform"),
    ),
    *_family("gap_sampling", FASTER, "duality gap of the same steps", {
        "bcfw_gap": "bcfw", "bcpfw_gap": "bcpfw", "bcfw_gap_cache": "bcfw_cache", "bcpfw_gap_cache": "bcpfw_cache",
    }),
    *_family("gap_sampling_seconds", BOTH, "duality gap of the same steps", {
        "bcfw_gap": "bcfw", "bcpfw_gap": "bcpfw", "bcfw_gap_cache": "bcfw_cache", "bcpfw_gap_cache": "bcpfw_cache",
    }, "seconds"),
    *_family("cache", CACHED, "duality gap", {"bcfw_gap_cache": "bcfw_gap", "bcpfw_gap_cache": "bcpfw_gap"}),
    Claim(
        "cache_overhead", "O16 5.1", "overhead caused by maintaining the cache is significant when the max oracle is fast",
        "duality gap after equal seconds, at the end: BCFW with gap sampling without a cache against with one",
        (OCR,), better_at_equal_work("bcfw_gap", "bcfw_gap_cache", over="seconds"),
    ),
    Claim(
        "cache_negligible", "O16 5.1", "In the case of expensive oracle (Figure 3c), the cache overhead is negligible",
        "duality gap after equal seconds, at the end: BCFW with gap sampling and a cache is not behind BCFW without one",
        (LSP,), not_worse("bcfw_gap_cache", "bcfw_gap", over="seconds"),
    ),
    *_family("pairwise", PAIRWISE, "duality gap, once below a tenth of D*", {
        "bcpfw": "bcfw", "bcpfw_gap": "bcfw_gap", "bcpfw_gap_cache": "bcfw_gap_cache",
    }, small=SMALL),
    Claim(
        "pairwise_larger_lambda", "O16 5.1", "The effect is stronger when the problem is more strongly convex",
        "ratio of the gaps of BCFW and BCPFW, both with gap sampling, after equal passes: it rises with λ, to more than 1",
        FAMILY, stronger_at_larger_lambda("bcpfw_gap", "bcfw_gap"),
    ),
    Claim(
        "active_sets", "O16 5.1", "computational overheads, which sometimes are significant",
        "seconds of as many passes, both with gap sampling: BCFW against BCPFW, at one λ of one data set at least",
        (OCR, LONG, CONLL, HORSES, LSP), better_at_equal_work("bcfw_gap", "bcpfw_gap", "seconds", sometimes=True),
        on_one_part,
    ),
    Claim(
        "constants", "O16 3.3, Fig. 2", "Our experiments show that the method is not very sensitive to the",
        "gap with F = 0.25, ν = 0.01 after equal passes: at most three times the best of the grid",
        ("o16_fig2",), _given_constants,
    ),
    Claim(
        "local_dominates", "O16 3.3, Fig. 2", "the regime with the local component dominating leads to faster convergence",
        "gap after equal passes: the best of F = 0.1, 0.25 with ν = 0, 0.01 against the best with F = 0",
        ("o16_fig2",), _local_dominates,
    ),
    Claim(
        "warm_start", "O16 5.2, Fig. 4", "First, we observe that warm start speeds up the grid search",
        "passes for the whole grid, keeping the primal variables against no warm start",
        PATHS, _fewer_passes("grid_keep_primal", "grid"),
    ),
    Claim(
        "path_and_grid", "O16 5.2, Fig. 4",
        "cost of computing the full regularization path is comparable with the cost of grid search",
        "passes of the path by O16's rule and of the grid without warm start: within a factor of three",
        PATHS, _comparable_passes("paper", "grid", 3.0),
    ),
    Claim(
        "warm_starts_alike", "O16 App. K", "we do not notice any consistent difference between the two approaches",
        "passes for the whole grid, keeping the primal or the dual variables: not the same one is better on every data set",
        PATHS, _passes_of_both("grid_keep_primal", "grid_keep_dual"), neither_always,
    ),
    Claim(
        "heuristic_saves", "O16 App. K", "At the cost of losing the guarantees, we can expect computational speed-up",
        "passes and seconds of the heuristic path (κ = 0.7) against those of the certified path (κ = 0.9)",
        PATHS, _fewer_passes("heuristic", "paper", seconds=True),
    ),
    Claim(
        "kappa", "O16 App. K, Fig. 7", "but overall the method is not too sensitive to κ",
        "passes of the certified path: κ from 0.3 to 0.99 within a factor of two", ("o16_fig7",), _kappas(_alike),
    ),
    Claim(
        "kappa_ends", "O16 App. K, Fig. 7", "both too small (< 0.5) and too large (≈ 1) values of parameter κ",
        "passes of the certified path with κ = 0.3 and with κ = 0.99: over 1.25 times the least with κ from 0.5 to 0.95",
        ("o16_fig7",), _kappas(_slower_ends),
    ),
    Claim(
        "toy", "O16 App. C",
        "adaptive gap-based sampling is n times faster than non-adaptive sampling schemes such as uniform",
        "oracle calls to a gap of 1e-9 against uniform sampling: over a fifth of min(n, K) times fewer",
        ("o16_toy",), _toy,
    ),
    Claim(
        "toy_lipschitz", "O16 App. C",
        "the sampling proportional to the curvature constants is equivalent to uniform sampling",
        "oracle calls to a gap of 1e-9, by curvature against uniform sampling: within a factor of 1.25",
        ("o16_toy",), _as_uniform,
    ),
)  # fmt: skip
