"""The losses over lambda, on every split that was measured."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import losses
from gapwise.stages.reports.page.html import charts, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 30
TITLE = "How good: the loss over λ"


def applies(run: ReportedRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses are in the table."""
    return losses.applies(run)


def content(run: ReportedRun) -> Markup:
    said = paragraph(
        "The mean ", term("loss"), " of the predictions. Towards the left the model is too simple; towards the right it "
        "follows the training data ever more closely, and where the losses part, it has begun to learn them by heart.",
    )  # fmt: skip
    return said + charts(losses.chart(run))
