"""Convergence: the gap against effective passes and against seconds, for each lambda, from the trace of the solve."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import convergence
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import charts, number
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 40
TITLE = "How fast: convergence"


def applies(run: ReportedRun) -> bool:
    """True if a positive gap was recorded during the solve, or primal values where there are no gaps."""
    return convergence.applies(run)


def content(run: ReportedRun) -> Markup:
    lams, rows = convergence.by_lambda(run)
    return fill(
        "convergence", gaps=convergence.quantity(run.trace) == "gap", lambdas=[number(lam, ".4g") for lam in lams],
        fresh=convergence.is_fresh(lams, rows), charts=charts(convergence.chart(run)),
    )  # fmt: skip
