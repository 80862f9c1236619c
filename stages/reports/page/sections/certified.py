"""The eps that is certified at every lambda against the work so far, of a path whose rule lets it fall."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from gapwise.stages.reports.certified import certified_rows
from gapwise.stages.reports.page.charts import FALLING, axis, frame, tooltip
from gapwise.stages.reports.page.html import chart, joined, number, paragraph, records
from gapwise.stages.reports.page.stored import ReportedRun
from gapwise.stages.reports.page.terms import term

ORDER = 35
TITLE = "How sure, and when: every λ within ε"


def applies(run: ReportedRun) -> bool:
    """True if more than one eps was certified."""
    return bool(run.trace) and certified_rows(run.trace)["eps"].size > 1


def content(run: ReportedRun) -> Markup:
    rows = certified_rows(run.trace)
    made = records(**rows)
    charts = joined(
        chart(f"certified-{over}", spec(made, over, title), f"Certified ε of the whole path against {title}.")
        for over, title in (("passes", "effective passes"), ("seconds", "seconds of solving"))
    )
    said = paragraph(
        "Each point is a solved λ: from then on every λ was known to be within this much of its optimum. The ",
        term("path"), " could have been stopped at any of them; in the end it was ", number(float(rows["eps"].min())), ".",
    )  # fmt: skip
    return said + Markup('<div class="pair">{}</div>').format(charts)


def spec(rows: list[dict[str, Any]], over: str, title: str) -> dict[str, Any]:
    """The chart of eps over `over`."""
    encoding = {
        "x": axis(over, title),
        "y": axis(
            "eps", "ε certified at every λ", {"type": "log", "nice": False, "padding": 8}, format="~g", tickCount=4
        ),
        "color": {"value": FALLING[0]},
    }
    shown = tooltip(
        {"eps": "every λ within", "lambda": "solved λ", "passes": "passes so far", "seconds": "seconds so far"}
    )
    return frame(
        [
            {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}, "encoding": encoding},
            {"mark": {"type": "point", "filled": True, "size": 36}, "encoding": {**encoding, "tooltip": shown}},
        ],
        height=240, data={"values": rows},
    )  # fmt: skip
