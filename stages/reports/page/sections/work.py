"""The work from the start of the path down to each lambda."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import work
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import charts
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 45
TITLE = "How much work: from the largest λ down"


def applies(run: ReportedRun) -> bool:
    """False for a single lambda, whose work is in the table."""
    return work.applies(run)


def content(run: ReportedRun) -> Markup:
    return fill("work", charts=charts(work.chart(run)))
