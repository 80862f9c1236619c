"""Pieces of pages: templates, numbers, tables and pictures. Whatever is put into a template is escaped unless it is HTML."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from gapwise.stages.reports.paint import Draw, Size, as_svg
from gapwise.storage.backend import Location

ENGINE = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "page" / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENGINE.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "allow_nan": False, "separators": (",", ":")}
LARGEST = 320
"""Longest side of a photograph, in pixels."""


def fill(template: str, **values: object) -> Markup:
    """The file ``templates/<template>.html`` with its values; a name that is missing is an error."""
    return Markup(ENGINE.get_template(f"{template}.html").render(**values))


@cache
def macro(name: str) -> Callable[..., Markup]:
    """A macro of ``templates/parts.html``."""
    return cast("Callable[..., Markup]", getattr(ENGINE.get_template("parts.html").module, name))


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


def plots(drawings: Sequence[tuple[str, Draw, Size]]) -> Markup:
    """Figures beside each other as far as there is room, each with its words for readers who cannot see it."""
    shown = [(words, Markup(as_svg(draw, size))) for words, draw, size in drawings]
    return macro("plots")(shown, len(shown) > 1)


def plain(value: object) -> object:
    """`value` as JSON can hold it: numbers to six digits, null for NaN and infinities."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def photograph(rgb: np.ndarray) -> str:
    """A data URI of an image (H, W, 3), uint8, as JPEG."""
    image = Image.fromarray(np.ascontiguousarray(rgb))
    image.thumbnail((LARGEST, LARGEST))
    return _uri(image, "JPEG", quality=82)


def label_map(labels: np.ndarray, colours: np.ndarray) -> str:
    """A data URI of labels (H, W), uint8, each drawn in its row of `colours` (labels, 4), red, green, blue and opacity."""
    step = max(1, -(-max(labels.shape) // LARGEST))
    image = Image.fromarray(np.ascontiguousarray(labels[::step, ::step], np.uint8)).convert("P")
    image.putdata(np.ascontiguousarray(labels[::step, ::step], np.uint8).ravel().tolist())
    image.putpalette(colours[:, :3].astype(np.uint8).tobytes())
    return _uri(image, "PNG", optimize=True, transparency=colours[:, 3].astype(np.uint8).tobytes())


def saved(file: Location) -> str:
    """A data URI of a PNG file."""
    return _data("png", file.read_bytes())


def ink(values: np.ndarray) -> str:
    """A data URI of a small grey picture (H, W) of values from 0, paper, to 1, ink."""
    grey = np.clip(255.0 * (1.0 - values), 0, 255).astype(np.uint8)
    return _uri(Image.fromarray(grey), "PNG", optimize=True)


def _uri(image: Image.Image, form: str, **options: object) -> str:
    stream = io.BytesIO()
    image.save(stream, form, **options)
    return _data(form.lower(), stream.getvalue())


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
