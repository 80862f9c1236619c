"""Convergence: the gap against effective passes and against seconds, for each lambda, from the trace of the solve."""

from __future__ import annotations

from markupsafe import Markup

from gapwise.stages.reports.charts import convergence
from gapwise.stages.reports.page.html import charts, joined, number, paragraph
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 40
TITLE = "How fast: convergence"


def applies(run: ReportedRun) -> bool:
    """True if a positive gap was recorded during the solve, or primal values where there are no gaps."""
    return convergence.applies(run)


def content(run: ReportedRun) -> Markup:
    lams, rows = convergence.by_lambda(run)
    many = "; one colour per λ. Each λ starts from the solution of the one before, so most of them need little work."
    end = many if len(lams) > 1 else "."
    if convergence.quantity(run.trace) == "gap":
        blocks = term("block", "blocks")
        said = paragraph(
            "Each point is a ", term("duality gap"), " that the solver computed with a pass over all ", blocks, end
        )
    else:
        said = paragraph("Each point is the primal objective; the method certifies no gap", end)
    return said + controls(lams, convergence.is_fresh(lams, rows)) + charts(convergence.chart(run))


def controls(lams: list[float], fresh: bool) -> Markup:
    """What to count from and which λ to pick out; nothing for a single λ."""
    if len(lams) < 2:
        return Markup("")
    choices = joined(
        Markup('<option value="{}">λ = {}</option>').format(k, number(lam, ".4g")) for k, lam in enumerate(lams)
    )
    text = Markup(
        '<p class="controls"><label>Show <select data-signal="chosen"><option value="-1">every λ</option>{}</select>'
        "</label> "
        '<label><input type="checkbox" data-signal="fresh"{}> count from the start of each λ</label></p>'
    )
    return text.format(choices, Markup(" checked") if fresh else "")
