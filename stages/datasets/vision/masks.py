"""New pictures from files; and predicted masks as pictures: one PNG file whose pixel values are labels, with a palette,
and one overlay of the labels' colours on the photograph, for each picture."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, NewInput, Predicted, Shown
from gapwise.stages.datasets.common.files import csv_text
from gapwise.stages.datasets.vision.picture_files import ENDINGS, by_name, decoded

OPACITY = 0.5
COLOURS = (
    (31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189), (140, 86, 75), (227, 119, 194),
    (127, 127, 127), (188, 189, 34), (23, 190, 207), (174, 199, 232), (255, 187, 120), (152, 223, 138), (255, 152, 150),
    (197, 176, 213), (196, 156, 148), (247, 182, 210), (199, 199, 199), (219, 219, 141), (158, 218, 229),
)  # fmt: skip
"""Of labels, from 0; they repeat."""
TWO = ((40, 40, 40), (255, 140, 0))
"""Of background and foreground."""


@dataclass(frozen=True)
class Pictures:
    """What masks are shown on."""

    names: tuple[str, ...]
    """Of the files, without suffix"""
    rgb: tuple[np.ndarray | None, ...]
    """uint8 (H, W, 3), as they were read; None where there is no photograph"""
    blocks: Sequence[int]
    """Whose predictions are shown on them"""


def read_new(inputs: Sequence[str], meta: Facts, longer_side: int | None = None) -> NewInput:
    """Pictures from files, and from all pictures of folders, sorted by name, decoded and turned upright as in training.

    With `longer_side`, the longer side of what is encoded has that many pixels; masks have the size of the upright picture.
    """
    files = [file for name in inputs for file in _files(Path(name))]
    rgb = [decoded(file) for file in files]
    return NewInput([_scaled(picture, longer_side) for picture in rgb], named(files, rgb), several=True)


def named(files: Sequence[Path], rgb: Sequence[np.ndarray | None]) -> Pictures:
    """Pictures by the names of their files; DataError if two would have the same mask."""
    stems = [file.stem for file in files]
    for k, stem in enumerate(stems):
        if stem in stems[:k]:
            raise DataError(
                f"{files[k]}: {files[stems.index(stem)]} has the same name; predict them one after the other"
            )
    return Pictures(tuple(stems), tuple(rgb), range(len(stems)))


def stored_input(arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
    """The photographs of a test split that are stored for figures; None if no photograph is stored."""
    if "hw" not in arrays or not len(arrays["hw"]):
        return None
    ptr = np.asarray(arrays["rgb_ptr"])
    sizes = np.asarray(arrays["hw"]).tolist()
    shown = [k for k in range(len(ptr) - 1) if ptr[k + 1] > ptr[k]]
    rgb = [np.asarray(arrays["rgb"][ptr[k] : ptr[k + 1]]).reshape(*hw, 3) for k, hw in zip(shown, sizes, strict=True)]
    names = meta.get("images", {}).get("test")
    stems = tuple(str(names[k]) if names else f"{k:03d}" for k in shown)
    return NewInput(rgb, Pictures(stems, tuple(rgb), shown), several=True, example=_png(rgb[0]))


def show(new: NewInput, predicted: Predicted) -> Shown:
    """A mask and an overlay a picture, and ``labels.csv``: what the values and colours of masks mean."""
    return Shown(files=_shown(new.source, predicted))


def _shown(pictures: Pictures, predicted: Predicted) -> Iterator[tuple[str, bytes]]:
    names = predicted.names or ["background", "foreground"]
    colours = TWO if len(names) == 2 else tuple(COLOURS[k % len(COLOURS)] for k in range(len(names)))
    rows = [(value, name, *colours[value]) for value, name in enumerate(names)]
    yield "labels.csv", csv_text(("value", "label", "red", "green", "blue"), rows).encode()
    for i, name, rgb in zip(pictures.blocks, pictures.names, pictures.rgb, strict=True):
        mask = predicted.mask(i).astype(np.uint8)
        if rgb is not None and mask.shape != rgb.shape[:2]:
            mask = _enlarged(mask, rgb.shape[0], rgb.shape[1])
        yield f"{name}.png", _png(mask, colours)
        if rgb is not None:
            paint = np.array(colours)[mask]
            yield f"{name}-overlay.png", _png(np.rint((1.0 - OPACITY) * rgb + OPACITY * paint).astype(np.uint8))


def _files(path: Path) -> list[Path]:
    """A file, or all pictures of a folder."""
    if not path.is_dir():
        if not path.is_file():
            raise DataError(f"{path}: no such file or folder; expected pictures")
        return [path]
    files = [*by_name(path).values()]
    if not files:
        raise DataError(f"{path}: holds no pictures; expected files that end in {', '.join(ENDINGS)}")
    return files


def _scaled(rgb: np.ndarray, longer_side: int | None) -> np.ndarray:
    from PIL import Image

    if longer_side is None or max(rgb.shape[:2]) == longer_side:
        return rgb
    scale = longer_side / max(rgb.shape[:2])
    size = (max(1, round(rgb.shape[1] * scale)), max(1, round(rgb.shape[0] * scale)))
    return np.asarray(Image.fromarray(rgb).resize(size, Image.Resampling.LANCZOS))


def _enlarged(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """The mask at another size; every pixel gets the label of the nearest pixel of the mask."""
    rows = (np.arange(height) * mask.shape[0]) // height
    columns = (np.arange(width) * mask.shape[1]) // width
    return mask[rows[:, None], columns]


def _png(pixels: np.ndarray, palette: Sequence[tuple[int, int, int]] = ()) -> bytes:
    from PIL import Image

    image = Image.fromarray(pixels)
    if palette:
        image.putpalette([part for colour in palette for part in colour])
    stream = io.BytesIO()
    image.save(stream, format="PNG")
    return stream.getvalue()
