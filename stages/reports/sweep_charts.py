"""Charts over the runs of a sweep, which its report and its figures share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gapwise.stages.reports.paint import SPARE
from gapwise.stages.reports.vega import Chart, Panel, Row, Spec, axis, lambda_axis, records, tooltip

WORK = {"effective_passes": "effective passes", "seconds": "seconds of solving"}


def coloured(names: Sequence[str]) -> Spec:
    """A colour for each run."""
    unique = list(dict.fromkeys(names))
    span = [SPARE[k % len(SPARE)] for k in range(len(unique))]
    return {"field": "run", "type": "nominal", "scale": {"domain": unique, "range": span}, "legend": {"columns": 2}}


def work_chart(paths: Sequence[tuple[str, Mapping[str, np.ndarray]]]) -> Chart:
    """What each path, (name, arrays of its path.zarr), cost from its start down to each lambda."""
    values: list[Row] = []
    for number, (name, arrays) in enumerate(paths):
        total = {column: np.cumsum(arrays[column]) for column in WORK}
        size = arrays["lambda"].size
        values += records(**{"lambda": arrays["lambda"], "run": [name] * size, "path": [number] * size, **total})
    colour = coloured([name for name, _ in paths])
    return Chart([_panel(values, colour, column) for column in WORK], beside=True, same_x=True)


def _panel(values: list[Row], colour: Spec, column: str) -> Panel:
    title = WORK[column]
    encoding: Spec = {
        "x": lambda_axis(), "y": axis(column, f"total {title}", {"type": "log", "nice": False}, format="~g", tickCount=5),
        "color": colour, "detail": {"field": "path"},
        "tooltip": [{"field": "run"}, *tooltip({"lambda": "λ", column: title})],
    }  # fmt: skip
    mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8, "point": {"size": 24}}
    words = f"Cumulative {title} from the start of the path down to λ."
    return Panel(f"work-{column}", words, [{"mark": mark, "encoding": encoding}], {"data": {"values": values}})
