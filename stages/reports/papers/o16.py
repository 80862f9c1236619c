"""Claims of Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (ICML 2016)."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from gapwise.stages.reports.curves import first_at, value_at
from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import Finding, Measured, amount, better_at_equal_work, verdict

FAMILY = ("o16_fig3", "o16_fig5_conll", "o16_fig5_horses", "o16_fig5_lsp")
PATHS = ("o16_fig4", "o16_fig4_usps")


def _given_constants_are_good(part: Measured) -> Finding:
    """F = 0.25, nu = 0.01 beside the best of the grid, after equal passes: within a factor of three."""
    ratios, words = [], []
    for lam in part.lambdas:
        gaps = {}
        names = [name for name in part.variants if re.fullmatch(r"F=\S+ nu=\S+", name)]
        x = min(float(trace["passes"][-1]) for name in names for trace in part.traces(name, lam))
        for name in names:
            gaps[name] = value_at(part.traces(name, lam), "passes", x)
        if "F=0.25 nu=0.01" not in gaps:
            raise KeyError("F=0.25 nu=0.01")
        best = min(gaps, key=lambda name: gaps[name])
        ratios.append(3.0 * gaps[best] / gaps["F=0.25 nu=0.01"])
        words.append(
            f"λ = {lam}: {gaps['F=0.25 nu=0.01']:.2g}, the best ({best}) {gaps[best]:.2g}, after {x:.3g} passes"
        )
    return verdict(ratios, words)


def _beats(name: str, ours: str, theirs: str, says: str) -> Claim:
    """A member of the family has a smaller gap than another after equal passes."""
    return Claim(name, "O16 5.1, Fig. 3", says, FAMILY, better_at_equal_work(ours, theirs))


def _fewer_passes(ours: str, theirs: str) -> Claim:
    def measure(part: Measured) -> Finding:
        mine, other = (float(np.sum(part.path(name)["effective_passes"])) for name in (ours, theirs))
        seconds = [float(np.sum(part.path(name)["seconds"])) for name in (ours, theirs)]
        text = f"{mine:,.1f} against {other:,.1f} passes, {seconds[0]:.2g} against {seconds[1]:.2g} s"
        return verdict([other / mine], [text])

    sentences = {
        ("heuristic", "paper"): "The heuristic path costs less than the one that is certified for every λ.",
        ("grid_keep_dual", "grid"): "Along a grid, a warm start that keeps the dual variables saves passes.",
        ("grid_keep_primal", "grid"): "So does one that keeps the primal variables.",
        ("heuristic", "grid"): "The heuristic path costs less than a grid of 31 λ's without warm starts.",
    }
    return Claim(f"{ours}_before_{theirs}", "O16 4 and 5.2, Fig. 4", sentences[ours, theirs], PATHS, measure)


def _path_finds_what_the_grid_finds(part: Measured) -> Finding:
    """The least test loss on the path against that on the grid: no more than five percent above it."""
    path, grid = (float(np.min(part.path(name)["test_loss"])) for name in ("paper", "grid"))
    return verdict(
        [1.05 * grid / max(path, 1e-12)], [f"least test loss {path:.4f} on the path, {grid:.4f} on the grid"]
    )


def _equal_accuracy(part: Measured) -> Finding:
    """Passes of the path to eps against those of a grid of as many lambdas, which its certificate needs to reach eps, too.

    The grid that was solved has fewer lambdas; what one of them costs is its mean.
    """
    grid, path = part.path("grid"), part.path("paper")
    first, last = float(path["lambda"][0]), float(path["lambda"][-1])
    inside = (grid["lambda"] <= first) & (grid["lambda"] >= last)
    lam, gap, hinge, norm2, spent = (
        grid[name][inside] for name in ("lambda", "gap", "hinge", "norm2", "effective_passes")
    )
    dense = float(np.mean(spent)) * path["lambda"].size
    passes = float(np.sum(path["effective_passes"]))
    text = (
        f"{amount(passes, 'passes')} for the path against about {dense:,.0f} passes for a grid of its "
        f"{path['lambda'].size} λ's. The grid's {lam.size} λ's between {first:.3g} and {last:.3g}, solved to "
        f"{np.max(gap):.2g} in {amount(float(np.sum(spent)), 'passes')}, certify {worst_between(lam, gap, hinge):.2g} "
        f"between them by O16's rule, and {worst_between(lam, gap, norm2, second_order=True):.2g} by ours"
    )
    return verdict([dense / passes], [text])


def worst_between(lam: np.ndarray, gap: np.ndarray, growth: np.ndarray, second_order: bool = False) -> float:
    """The largest gap that solved points certify between the first and the last of their lambdas, the best at each lambda.

    Parameters
    ----------
    lam, gap : np.ndarray, (points,)
        Falling lambdas and the gaps g there. They are compared at 64 lambdas between neighbours.
    growth : np.ndarray, (points,)
        The mean hinge R: below lambda_j the point has the gap g + (1 - lambda / lambda_j) (R - g) by O16's rule. With
        `second_order` it is N = ||w||^2 and the gap, on both sides, g + N (lambda - lambda_j)^2 / (2 lambda).
    """
    share = np.linspace(0.0, 1.0, 66)
    between = np.concatenate([np.exp((1.0 - share) * np.log(a) + share * np.log(b)) for a, b in pairwise(lam)])[:, None]
    if second_order:
        bounds = gap + growth * (between - lam) ** 2 / (2.0 * between)
    else:
        bounds = np.where(between <= lam * (1.0 + 1e-9), gap + (1.0 - between / lam) * (growth - gap), np.inf)
    return float(np.max(np.min(bounds, axis=1)))


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
    return verdict([uniform / gap / (min(n, classes) / 5.0) for gap in (exact, stale)], [text])


CLAIMS = (
    Claim(
        "stale_gaps", "O16 3.1, Fig. 1", "Gap sampling with an exact pass every 10 passes beats gap sampling without any.",
        ("o16_fig1",), better_at_equal_work("every 10", "never"),
    ),
    _beats("gap_sampling", "bcfw_gap", "bcfw", "Gap sampling beats uniform sampling with Frank-Wolfe steps."),
    _beats("gap_sampling_pairwise", "bcpfw_gap", "bcpfw", "Gap sampling beats uniform sampling with pairwise steps."),
    _beats("pairwise", "bcpfw_gap", "bcfw_gap", "With gap sampling, pairwise steps beat Frank-Wolfe steps in the end."),
    _beats("cache", "bcfw_gap_cache", "bcfw_gap", "A cache of labellings lowers the gap after equal oracle calls."),
    Claim(
        "constants", "O16 3.3, Fig. 2", "F = 0.25, ν = 0.01 is a good choice: its gap is at most three times the best one.",
        ("o16_fig2",), _given_constants_are_good,
    ),
    _fewer_passes("heuristic", "paper"),
    _fewer_passes("grid_keep_dual", "grid"),
    _fewer_passes("grid_keep_primal", "grid"),
    _fewer_passes("heuristic", "grid"),
    Claim(
        "path_as_good_as_grid", "O16 5.2", "The path holds a model that tests as well as the best of the grid.",
        PATHS, _path_finds_what_the_grid_finds,
    ),
    Claim(
        "path_at_equal_accuracy", "O16 4",
        "At equal accuracy, also between λ's, it costs less than a grid without warm starts.",
        PATHS, _equal_accuracy,
    ),
    Claim(
        "toy", "O16 App. C",
        "With one hard block gap sampling takes about min(n, K) times fewer calls (here: over a fifth of it).",
        ("o16_toy",), _toy,
    ),
)  # fmt: skip
