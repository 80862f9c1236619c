"""Claims of Lacoste-Julien, Jaggi, Schmidt, Pletscher (ICML 2013)."""

from __future__ import annotations

from gapwise.stages.reports.papers.claim import Claim
from gapwise.stages.reports.papers.measured import better_at_equal_work, less_work

ALL = ("lj13_fig1", "lj13_fig1_conll", "lj13_fig1_alignment", "lj13_large")
OCR = ("lj13_fig1", "lj13_large")


def _faster(theirs: str, words: str, parts: tuple[str, ...] = ALL) -> Claim:
    """BCFW is nearer to the optimum than a method of the literature after equal oracle calls."""
    return Claim(
        f"bcfw_before_{theirs}", "LJ13 5, Fig. 1", f"After equal oracle calls BCFW is nearer to the optimum than {words}.",
        parts, better_at_equal_work("bcfw", theirs, "primal_excess", "oracle_calls"),
    )  # fmt: skip


CLAIMS = (
    _faster("fw", "batch Frank-Wolfe"),
    _faster("cutting_plane", "one-slack cutting planes"),
    _faster("ssg", "the stochastic subgradient method"),
    _faster("eg", "online exponentiated gradient", ("lj13_fig1", "lj13_fig1_conll", "lj13_large")),
    Claim(
        "line_search", "LJ13 5", "Line search beats the fixed step 2n/(k + 2n).",
        ALL, better_at_equal_work("bcfw", "bcfw_nols", "primal_excess", "oracle_calls"),
    ),
    Claim(
        "bcfw_averaging", "LJ13 5, Fig. 1", "Weighted averaging lowers the primal suboptimality of BCFW at equal work.",
        ALL, better_at_equal_work("bcfw_wavg", "bcfw", "primal_excess", "oracle_calls"),
    ),
    Claim(
        "ssg_averaging", "LJ13 5, Fig. 1", "Weighted averaging lowers that of the subgradient method.",
        ALL, better_at_equal_work("ssg_wavg", "ssg", "primal_excess", "oracle_calls"),
    ),
    Claim(
        "averaging_tests", "LJ13 5, Fig. 1 (e)", "With averaging, BCFW has a lower test loss after equal work.",
        ("lj13_fig1_conll",), better_at_equal_work("bcfw_wavg", "bcfw", "test_loss", "oracle_calls"),
    ),
    Claim(
        "n_times", "LJ13 Table 1", "BCFW needs about n times fewer calls than batch Frank-Wolfe (here: over ten times).",
        OCR, less_work("bcfw", "fw", "primal_excess", "oracle_calls", times=10.0),
    ),
)  # fmt: skip
