"""The work from the start of the path down to each lambda."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import work
from gapwise.stages.reports.page.html import charts, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 45
TITLE = "How much work: from the largest λ down"


def applies(run: ReportedRun) -> bool:
    """False for a single lambda, whose work is in the table."""
    return work.applies(run)


def content(run: ReportedRun) -> Markup:
    said = paragraph(
        "An ", term("effective pass"), " is as many calls of the ", term("max-oracle"), " as there are ",
        term("block", "blocks"), ". Each point is a solved λ.",
    )  # fmt: skip
    return said + charts(work.chart(run))
