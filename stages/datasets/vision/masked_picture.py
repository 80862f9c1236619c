"""One picture and its mask from a user's files, checked: sizes, depths, transparency, and every value of the mask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.vision.class_list import ClassList, shown
from gapwise.stages.datasets.vision.pictures import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

SMALLEST = 8
"""Pixels of a side."""
DEEP = ("I", "F")
"""How the modes of more than 8 bits begin."""
ORIENTATION = 0x0112
"""The EXIF tag for the orientation of a picture."""


def load_masked(item: tuple[Path, Path], classes: ClassList) -> Picture:
    """A picture, uint8 (H, W, 3), and the classes of its pixels, uint8 (H, W); DataError names the file at fault.

    Pictures are turned upright as their EXIF data say, which is how programs show them; grey ones get three equal channels.
    """
    picture, mask = item
    rgb, turned = read_picture(picture)
    labels = read_mask(mask, classes)
    if rgb.shape[:2] != labels.shape:
        note = ", after it was turned upright as its EXIF data say; turn the mask as well" if turned else ""
        raise DataError(f"{mask}: is {_size(labels)}, but {picture} is {_size(rgb)}{note}; expected the same size")
    return Picture(rgb, labels)


def read_picture(path: Path) -> tuple[np.ndarray, bool]:
    """Pixels uint8 (H, W, 3), and whether the EXIF data turned them."""
    from PIL import ImageOps

    image = _opened(path)
    if image.mode.startswith(DEEP):
        raise DataError(f"{path}: has more than 8 bits a channel (mode {image.mode}); save it with 8")
    if "A" in image.getbands() or "transparency" in image.info:
        _refuse_transparent(path, image, "save the picture without an alpha channel")
    turned = image.getexif().get(ORIENTATION, 1) != 1
    rgb = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    if min(rgb.shape[:2]) < SMALLEST:
        raise DataError(f"{path}: is {_size(rgb)}; expected at least {SMALLEST} x {SMALLEST} pixels")
    return rgb, turned


def read_mask(path: Path, classes: ClassList) -> np.ndarray:
    """The class of each pixel, uint8 (H, W), VOID for void; DataError names the first pixel whose mark is unknown."""
    image = _opened(path)
    if image.format == "JPEG":
        raise DataError(f"{path}: is a JPEG, which does not keep exact values; save masks as PNG")
    if image.mode.startswith(DEEP):
        raise DataError(f"{path}: has 16 bits or more a pixel (mode {image.mode}); save it with 8, values 0 to 255")
    if "A" in image.getbands():
        _refuse_transparent(path, image, "give pixels without a class the value or colour of void instead")
    if classes.by_colour:
        rgb = np.asarray(image.convert("RGB")).astype(np.int64)
        marks = (rgb[..., 0] << 16) + (rgb[..., 1] << 8) + rgb[..., 2]
    elif image.mode in ("L", "P", "1", "LA"):
        marks = np.asarray(image.getchannel(0) if image.mode == "LA" else image).astype(np.int64)
    else:
        raise DataError(
            f"{path}: is a mask of colours (mode {image.mode}), but {classes.file.name} gives numbers; give the colour of "
            "each class there, or save the mask with one value a pixel"
        )
    known, numbers = classes.codes()
    position = np.minimum(np.searchsorted(known, marks), known.size - 1)
    unknown = known[position] != marks
    if unknown.any():
        row, column = (int(k) for k in np.argwhere(unknown)[0])
        count = int(unknown.sum())
        raise DataError(
            f"{path}: {shown(int(marks[row, column]), classes.by_colour)} at row {row}, column {column} (and {count} pixels "
            f"in all are of no class) is not in {classes.file.name}; add it, or void"
        )
    return np.asarray(numbers[position])


def _opened(path: Path) -> Image:
    """The decoded image."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as image:
            image.load()
            return image
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{path}: cannot be decoded as an image ({' '.join(str(error).split())})") from error


def _refuse_transparent(path: Path, image: Image, advice: str) -> None:
    alpha = np.asarray(image.convert("RGBA"))[..., 3]
    if alpha.min() < 255:
        row, column = (int(k) for k in np.argwhere(alpha < 255)[0])
        raise DataError(f"{path}: has transparent pixels, the first at row {row}, column {column}; {advice}")


def _size(pixels: np.ndarray) -> str:
    """Width and height."""
    return f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
