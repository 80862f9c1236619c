"""Pieces of HTML. `markupsafe` escapes whatever is put into them unless it is already HTML."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gapwise.stages.reports.vega import Chart, Panel, on_page, plain


def number(value: Any, form: str = ".3g") -> str:
    """A number for people; – for None and NaN."""
    if value is None or isinstance(value, str):
        return value or "–"
    if isinstance(value, float) and math.isnan(value):
        return "–"
    if math.isinf(float(value)):
        return "∞" if value > 0 else "−∞"
    return format(value, form).replace("-", "−") if form else str(value)


def joined(parts: Iterable[Markup], between: str = "") -> Markup:
    """Parts one after the other."""
    return Markup(between).join(parts)


def paragraph(*parts: Any) -> Markup:
    """A paragraph of texts and HTML."""
    return Markup("<p>{}</p>").format(Markup("").join(parts))


def table(heads: Sequence[Any], rows: Iterable[Sequence[Any]], *, caption: str, marked: int | None = None) -> Markup:
    """A table that scrolls sideways where it is too wide; row `marked` stands out."""
    head = joined(Markup('<th scope="col">{}</th>').format(name) for name in heads)
    body = joined(
        Markup("<tr{}>{}</tr>").format(
            Markup(' class="marked"') if k == marked else "", joined(Markup("<td>{}</td>").format(cell) for cell in row)
        )
        for k, row in enumerate(rows)
    )
    text = Markup("<table><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>")
    return scrolling(caption, text.format(caption, head, body))


def picture(alt: str, uri: str) -> Markup:
    """An image as wide as the text."""
    return Markup('<p><img class="figure" alt="{}" src="{}"></p>').format(alt, uri)


def scrolling(label: str, content: Markup) -> Markup:
    """A box that scrolls sideways, also by keyboard, where its content is too wide."""
    return Markup('<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>').format(label, content)


def definitions(facts: Mapping[str, Any]) -> Markup:
    """Names and values."""
    rows = (Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(name, value) for name, value in facts.items())
    return Markup('<dl class="facts">{}</dl>').format(joined(rows))


def data(name: str, value: Any) -> Markup:
    """`value` as JSON that the page's script finds under `name`; no text in it can end its element."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup('<script type="application/json" data-for="{}">{}</script>').format(name, Markup(safe))


def charts(chart: Chart) -> Markup:
    """The panels of a chart, each with what it shows in words, for those who cannot see it."""
    shown = joined(_plot(panel) for panel in chart.panels)
    return Markup('<div class="pair">{}</div>').format(shown) if chart.beside else shown


def _plot(panel: Panel) -> Markup:
    text = Markup(
        '<figure class="chart"><div class="plot" id="{0}" role="img" aria-label="{1}"></div>'
        "<figcaption>{1}</figcaption>{2}</figure>"
    )
    return text.format(panel.name, panel.words, data(panel.name, on_page(panel)))
