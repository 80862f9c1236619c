"""Claims of Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien (ICML 2016)."""

from __future__ import annotations

import re

import numpy as np

from stages.reports.curves import value_at
from stages.reports.papers.claim import Claim
from stages.reports.papers.measured import Finding, Measured, better_at_equal_work, verdict

FAMILY = ("o16_fig3", "o16_fig5_conll", "o16_fig5_horses")
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
)  # fmt: skip
