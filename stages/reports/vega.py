"""Charts as Vega-Lite specifications: one description that the report shows and that `chart_files` turns into files.

Colours that depend on light and dark are set by the page's style.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapwise.stages.reports.paint import BLUE, GREY, LAMBDA_FALLS, ORANGE

FALLING = (BLUE, "#7a5195", ORANGE)
"""Colours from the largest lambda to the least."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
Spec = dict[str, object]
"""A JSON object of Vega-Lite"""
Row = dict[str, object]


@dataclass(frozen=True)
class Panel:
    """A plot.

    Attributes
    ----------
    name : str
        Its id on a page.
    words : str
        What it shows, for those who cannot see it.
    layers : sequence of Spec
        Drawn one over the other.
    rest : Spec
        Further entries beside the layers: data, transform.
    params : sequence of Spec
        Parameters that controls of the page set.
    height : int
        In pixels, on a page.
    """

    name: str
    words: str
    layers: Sequence[Spec]
    rest: Mapping[str, object]
    params: Sequence[Spec] = ()
    height: int = 260


@dataclass(frozen=True)
class Chart:
    """Panels that belong together.

    Attributes
    ----------
    title : str
        Only the file of a figure has it.
    beside : bool
        Whether the panels stand beside each other on a page; in a file they are stacked.
    same_x : bool
        Whether stacked panels share their horizontal axis.
    """

    panels: Sequence[Panel]
    title: str = ""
    beside: bool = False
    same_x: bool = False


def on_page(panel: Panel) -> Spec:
    """A panel as wide as its place on a page."""
    look = _look("system-ui, sans-serif", 12)
    return {
        "$schema": SCHEMA, "width": "container", "height": panel.height,
        "autosize": {"type": "fit", "contains": "padding"}, "background": None,
        "layer": [*panel.layers], "params": [*panel.params], "config": look, **panel.rest,
    }  # fmt: skip


def as_picture(chart: Chart) -> Spec:
    """All panels one below the other, for a column of a paper: text has 6.7 points where it is printed 8 cm wide."""
    panels = [
        {"width": 280, "height": 0.55 * panel.height, "layer": [*panel.layers], **panel.rest} for panel in chart.panels
    ]
    params = {str(param["name"]): param for panel in chart.panels for param in panel.params}
    shared = {"color": "shared", **({"x": "shared"} if chart.same_x else {})}
    title = {"title": {"text": chart.title, "anchor": "start"}} if chart.title else {}
    return {
        "$schema": SCHEMA, "background": "white", "vconcat": panels, "spacing": 8, "params": [*params.values()],
        "resolve": {"scale": shared}, "config": _look("Liberation Sans, Arial, sans-serif", 10), **title,
    }  # fmt: skip


def _look(font: str, size: int) -> Spec:
    return {
        "font": font,
        "view": {"stroke": None},
        "title": {"fontSize": size, "fontWeight": "normal"},
        "text": {"fontSize": size},
        "axis": {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal", "labelFlush": False,
                 "tickCount": 6},
        "legend": {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal", "orient": "top",
                   "offset": 4, "title": None, "symbolStrokeWidth": 3, "labelLimit": 400},
    }  # fmt: skip


def lambda_axis(within: tuple[float, float] | None = None) -> Spec:
    """λ on a logarithmic axis that falls from left to right as a path does; `within` (least, most), charts can share."""
    scale = {"padding": 12} if within is None else {"domain": [*within]}
    return {
        "field": "lambda", "type": "quantitative", "title": LAMBDA_FALLS,
        "scale": {"type": "log", "reverse": True, "nice": False, **scale},
        "axis": {"format": "~g", "labelOverlap": "greedy", "grid": False},
    }  # fmt: skip


def axis(field: str, title: str, scale: Mapping[str, object] | None = None, **look: object) -> Spec:
    """Numbers on an axis; `look` is for the axis, as `format`."""
    return {"field": field, "type": "quantitative", "title": title, "scale": scale or {}, "axis": look}


def log_or_linear(least: float, most: float) -> Spec:
    """A logarithmic scale where values differ much, otherwise one from 0."""
    return {"type": "log", "nice": False} if 0.0 < least < 0.02 * most else {"zero": True}


def level(value: float, words: str, at_left: bool = False) -> list[Spec]:
    """A dashed horizontal line with its name above one of its ends."""
    rows = {"values": [{"y": value, "words": words}]}
    height: Spec = {"y": {"field": "y", "type": "quantitative"}}
    side: Spec = {"align": "left", "dx": 4, "x": 0} if at_left else {"align": "right", "dx": -2, "x": "width"}
    text = {"type": "text", "dy": -7, "color": GREY, **side}
    return [
        {"data": rows, "mark": {"type": "rule", "strokeDash": [5, 4], "color": GREY}, "encoding": height},
        {"data": rows, "mark": text, "encoding": {**height, "text": {"field": "words"}}},
    ]


def tooltip(fields: Mapping[str, str], form: str = ".4~g") -> list[Spec]:
    """What is shown at a point: titles by field."""
    return [
        {"field": name, "title": title, **({} if name == "status" else {"type": "quantitative", "format": form})}
        for name, title in fields.items()
    ]


def records(**columns: object) -> list[Row]:
    """Columns of equal length as rows for a chart."""
    lists = {name: np.asarray(column).tolist() for name, column in columns.items()}
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def plain(value: object) -> object:
    """`value` as JSON can hold it: numbers to six digits, null for NaN and infinities."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
