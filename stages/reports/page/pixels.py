"""Pictures as text that a page can hold: photographs as JPEG, label maps as palette PNG."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from gapwise.storage.backend import Location

LARGEST = 320
"""Longest side in pixels."""


def photograph(rgb: np.ndarray) -> str:
    """A data URI of an image (H, W, 3), uint8."""
    picture = Image.fromarray(np.ascontiguousarray(rgb))
    picture.thumbnail((LARGEST, LARGEST))
    return _uri(picture, "JPEG", quality=82)


def label_map(labels: np.ndarray, colours: np.ndarray) -> str:
    """A data URI of labels (H, W), uint8, each drawn in its row of `colours` (labels, 4), red, green, blue and opacity."""
    step = max(1, -(-max(labels.shape) // LARGEST))
    picture = Image.fromarray(np.ascontiguousarray(labels[::step, ::step], np.uint8))
    picture = picture.convert("P") if picture.mode != "P" else picture
    picture.putdata(np.ascontiguousarray(labels[::step, ::step], np.uint8).ravel().tolist())
    picture.putpalette(colours[:, :3].astype(np.uint8).tobytes())
    return _uri(picture, "PNG", optimize=True, transparency=colours[:, 3].astype(np.uint8).tobytes())


def saved(file: Location) -> str:
    """A data URI of a PNG file."""
    return _data("png", file.read_bytes())


def ink(values: np.ndarray) -> str:
    """A data URI of a small grey picture (H, W) of values from 0, paper, to 1, ink."""
    grey = np.clip(255.0 * (1.0 - values), 0, 255).astype(np.uint8)
    return _uri(Image.fromarray(grey), "PNG", optimize=True)


def _uri(picture: Image.Image, form: str, **options: object) -> str:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return _data(form.lower(), stream.getvalue())


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
