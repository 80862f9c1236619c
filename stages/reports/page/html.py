"""Pieces of HTML, each a macro of ``templates/parts.html``; whatever is put into them is escaped unless it is HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from gapwise.stages.reports.page.engine import macro
from gapwise.stages.reports.vega import Chart, on_page, plain


def number(value: float | str | None, form: str = ".3g") -> str:
    """A number for people; – for None and NaN."""
    if value is None or isinstance(value, str):
        return value or "–"
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if math.isinf(float(value)):
        return "∞" if value > 0 else "−∞"
    return format(value, form).replace("-", "−") if form else str(value)


def paragraph(*parts: object) -> Markup:
    """A paragraph of texts and HTML."""
    return macro("paragraph")(parts)


def table(
    heads: Sequence[object], rows: Iterable[Sequence[object]], *, caption: str, marked: int | None = None
) -> Markup:
    """A table that scrolls sideways where it is too wide; row `marked` stands out."""
    return macro("table")(heads, [*rows], caption, marked)


def picture(alt: str, uri: str) -> Markup:
    """An image as wide as the text."""
    return macro("picture")(alt, uri)


def charts(chart: Chart) -> Markup:
    """The panels of a chart, each with a description in words for readers who cannot see it."""
    plots = [{"name": p.name, "words": p.words, "spec": plain(on_page(p))} for p in chart.panels]
    return macro("charts")(plots, chart.beside)
