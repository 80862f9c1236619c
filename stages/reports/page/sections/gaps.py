"""The certified gap at every lambda of the path, and at the breakpoints."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.charts import path
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import charts
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 20
TITLE = "How sure: the gap over λ"


def applies(run: ReportedRun) -> bool:
    """False for a single lambda, whose gap is in the table, and for paths without gaps."""
    return path.applies(run) and bool(np.isfinite(run.arrays["gap"]).any())


def content(run: ReportedRun) -> Markup:
    return fill("gaps", whole=path.is_whole(run), charts=charts(path.chart(run)))
