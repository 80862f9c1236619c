"""The losses over lambda, on every split that was measured."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import losses
from gapwise.stages.reports.page.engine import fill
from gapwise.stages.reports.page.html import charts
from gapwise.stages.reports.page.stored import ReportedRun

ORDER = 30
TITLE = "How good: the loss over λ"


def applies(run: ReportedRun) -> bool:
    """False before evaluation, and for a single lambda, whose losses are in the table."""
    return losses.applies(run)


def content(run: ReportedRun) -> Markup:
    criterion = str(run.measured.get("criterion", "")).replace("_", " ")
    validated = "validation_loss" in run.arrays
    return fill("losses", validated=validated, criterion=criterion, charts=charts(losses.chart(run)))
