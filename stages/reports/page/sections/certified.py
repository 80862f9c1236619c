"""The eps that is certified at every lambda against the work so far, of a path whose rule lets it fall."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.certified import certified_rows
from gapwise.stages.reports.charts import certified
from gapwise.stages.reports.page.html import charts, number, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 35
TITLE = "How sure, and when: every λ within ε"


def applies(run: ReportedRun) -> bool:
    """True if more than one eps was certified."""
    return certified.applies(run)


def content(run: ReportedRun) -> Markup:
    rows = certified_rows(run.trace)
    said = paragraph(
        "Each point is a solved λ: from then on every λ was known to be within this much of its optimum. The ",
        term("path"), " could have been stopped at any of them; in the end it was ", number(float(rows["eps"].min())), ".",
    )  # fmt: skip
    return said + charts(certified.chart(run))
