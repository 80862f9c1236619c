"""The saved view "Compare" of an experiment, in MLflow's menu Views: the columns and charts that a comparison begins with.

MLflow's page keeps a saved view as a tag of the experiment: JSON with a name and the page's state, deflated. A version of
MLflow that expects another state ignores what it does not know, and the runs are the same without it.
"""

from __future__ import annotations

import base64
import json
import zlib

KEY = "gapwise"
"""At the end of an address, `?viewStateShareKey=gapwise` opens the view."""
TAG = f"mlflow.sharedViewState.{KEY}"
MADE = 1_767_225_600_000
"""When the view was made, in ms: a constant, as its content is."""

COLUMNS = (
    "params.`solver`", "params.`seed`", "metrics.`best_test_loss`", "metrics.`best_lambda`",
    "metrics.`certified_gap`", "metrics.`passes`", "metrics.`oracle_calls`", "metrics.`seconds`",
    "attributes.`Dataset`", "attributes.`Source`", "attributes.`Models`",
)  # fmt: skip
WIDTHS = {"attributes.`Run Name`": 250, "runDateAndNestInfo": 140, "params.`solver`": 150, "params.`seed`": 60}
"""Of columns, in pixels; others have 120. The first two are always there, before those of COLUMNS."""
LAMBDA, PASSES = "vs_lambda/log10_lambda", "vs_passes/passes"
SECTIONS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "Over log10 λ": (("test_loss", LAMBDA), ("vs_lambda/certified_gap", LAMBDA), ("vs_lambda/passes", LAMBDA)),
    "Over effective passes": (
        ("vs_passes/log10_lambda", PASSES), ("vs_passes/log10_gap", PASSES), ("vs_passes/dual", PASSES),
    ),
    "One number a run": (("best_test_loss", None), ("passes", None), ("seconds", None)),
}  # fmt: skip
"""Metric and x-axis of the charts of each section; None: a bar for each run."""
FOLDED = ("vs_lambda", "vs_passes", "vs_solved", "with_best_lambda", "Model metrics", "System metrics")
"""The sections of all other charts, which are closed at first; MLflow names them by the beginnings of metrics."""


def saved_view() -> str:
    """The value of the tag."""
    sections, charts = [], []
    for name, shown in SECTIONS.items():
        sections.append({"uuid": name, "name": name, "display": True, "isReordered": False, "deleted": False,
                         "isGenerated": False})  # fmt: skip
        charts += [_chart(name, *chart) for chart in shown]
    sections += [{**sections[0], "uuid": name, "name": name, "display": False, "isGenerated": True} for name in FOLDED]
    order = list(dict.fromkeys((*WIDTHS, *COLUMNS)))
    state = {
        "searchFilter": "", "orderByKey": "attributes.start_time", "orderByAsc": False, "startTime": "ALL",
        "lifecycleFilter": "Active", "datasetsFilter": [], "modelVersionFilter": "All Runs",
        "selectedColumns": list(COLUMNS), "columnOrder": order, "columnWidths": {**dict.fromkeys(order, 120), **WIDTHS},
        "runsHiddenMode": "FIRST_20_RUNS", "compareRunCharts": charts, "compareRunSections": sections,
        "viewMaximized": False, "runListHidden": False, "isAccordionReordered": True, "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True, "groupBy": None, "groupsExpanded": {},
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
    }  # fmt: skip
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode(), 9)).decode()
    return json.dumps({"name": "Compare", "createdAt": MADE, "updatedAt": MADE, "state": f"deflate;{packed}"})


def _chart(section: str, metric: str, axis: str | None) -> dict[str, object]:
    """One chart, as the page describes it."""
    chart = {
        "uuid": f"{section} {metric}", "runsCountToCompare": 20, "metricSectionId": section, "deleted": False,
        "isGenerated": False, "displayName": metric, "metricKey": metric,
    }  # fmt: skip
    if axis is None:
        return {**chart, "type": "BAR"}
    return {
        **chart, "type": "LINE", "lineSmoothness": 0, "xAxisScaleType": "linear", "scaleType": "linear", "range": {},
        "xAxisKey": "metric", "selectedXAxisMetricKey": axis, "yAxisKey": "metric", "yAxisExpressions": [],
        "ignoreOutliers": False, "useGlobalXaxisKey": False, "useGlobalLineSmoothing": True, "selectedYAxisMetricKey": "",
    }  # fmt: skip
