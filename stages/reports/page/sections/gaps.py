"""The certified gap at every lambda of the path, and at the breakpoints."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from gapwise.stages.reports.charts import path
from gapwise.stages.reports.page.html import charts, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 20
TITLE = "How sure: the gap over λ"


def applies(run: ReportedRun) -> bool:
    """False for a single lambda, whose one gap is in the table, and where nothing has a gap."""
    return path.applies(run) and bool(np.isfinite(run.arrays["gap"]).any())


def content(run: ReportedRun) -> Markup:
    there = " Between {}, the curve is the certified gap of the model there."
    said = paragraph(
        "The ", term("duality gap"), " says how far a model can be from the optimum. On and below the dashed line it is as "
        "good as was asked for. λ falls from left to right.",
        Markup(there).format(term("breakpoint", "breakpoints")) if path.is_whole(run) else "",
    )  # fmt: skip
    return said + charts(path.chart(run))
