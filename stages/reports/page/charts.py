"""Vega-Lite parts that the charts of a report share. Colours that depend on light and dark are set by the page's style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapwise.stages.reports.paint import BLUE, GREEN, GREY, ORANGE, SPARE

__all__ = [
    "BLUE", "FALLING", "GREEN", "GREY", "ORANGE", "SPARE", "axis", "frame", "lambda_axis", "level", "log_or_linear",
    "tooltip",
]  # fmt: skip

FALLING = (BLUE, "#8a63c9", ORANGE)
"""Colours from the largest lambda to the least."""
Spec = dict[str, Any]


def frame(layers: list[Spec], height: int = 260, **more: Any) -> Spec:
    """A chart as wide as its place, of layers drawn one over the other."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": "container",
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": None,
        "layer": layers,
        "config": {
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "labelFlush": False,
                     "tickCount": 6},
            "legend": {"labelFontSize": 12, "orient": "top", "title": None, "symbolStrokeWidth": 3, "labelLimit": 400},
        },
        **more,
    }  # fmt: skip


def lambda_axis(field: str = "lambda") -> Spec:
    """λ on a logarithmic axis that falls from left to right as a path does."""
    return {
        "field": field, "type": "quantitative", "title": "λ",
        "scale": {"type": "log", "reverse": True, "nice": False, "padding": 12},
        "axis": {"format": "~g", "labelOverlap": "greedy", "grid": False},
    }  # fmt: skip


def axis(field: str, title: str, scale: Spec | None = None, **look: Any) -> Spec:
    """Numbers on an axis; `look` is for the axis, as `format`."""
    return {"field": field, "type": "quantitative", "title": title, "scale": scale or {}, "axis": look}


def log_or_linear(least: float, most: float) -> Spec:
    """A logarithmic scale where values differ much, otherwise one from 0."""
    return {"type": "log", "nice": False} if 0.0 < least < 0.02 * most else {"zero": True}


def level(value: float, words: str, at_left: bool = False) -> list[Spec]:
    """A dashed horizontal line with its name above one of its ends."""
    rows = {"values": [{"y": value, "words": words}]}
    at: Spec = {"y": {"field": "y", "type": "quantitative"}}
    side = {"align": "left", "dx": 4, "x": 0} if at_left else {"align": "right", "dx": -2, "x": "width"}
    text = {"type": "text", "dy": -7, "fontSize": 12, "color": GREY, **side}
    return [
        {"data": rows, "mark": {"type": "rule", "strokeDash": [5, 4], "color": GREY}, "encoding": at},
        {"data": rows, "mark": text, "encoding": {**at, "text": {"field": "words"}}},
    ]


def tooltip(fields: Mapping[str, str], form: str = ".4~g") -> list[Spec]:
    """What is shown at a point: titles by field."""
    return [
        {"field": name, "title": title, **({} if name == "status" else {"type": "quantitative", "format": form})}
        for name, title in fields.items()
    ]
