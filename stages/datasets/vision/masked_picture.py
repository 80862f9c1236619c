"""One picture and its mask from a user's files, checked: sizes, orientation, and every value of the mask."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gapwise.stages.datasets import DataError
from gapwise.stages.datasets.vision.class_list import ClassList, shown
from gapwise.stages.datasets.vision.picture_files import Opened, opened, pixels_of, size_of
from gapwise.stages.datasets.vision.pictures import Picture


def load_masked(item: tuple[Path, Path], classes: ClassList) -> Picture:
    """A picture, uint8 (H, W, 3), and the classes of its pixels, uint8 (H, W); DataError names the file at fault.

    Both are turned upright as their EXIF data say. Where only one of them is said to be turned, the sizes must show that the
    mask was drawn on the upright picture.
    """
    picture, mask = (opened(path) for path in item)
    rgb, labels = pixels_of(picture), classes_of(mask, classes)
    turned = picture.orientation != 1
    if rgb.shape[:2] != labels.shape:
        note = ", after it was turned upright as its EXIF data say; turn the mask as well" if turned else ""
        raise DataError(
            f"{mask.where}: is {size_of(labels)}, but {picture.where} is {size_of(rgb)}{note}; expected the same size"
        )
    sideways = max(picture.orientation, mask.orientation) > 4
    if picture.orientation != mask.orientation and not (sideways and labels.shape[0] != labels.shape[1]):
        raise DataError(
            f"{mask.where}: may be turned or mirrored against {picture.where}, whose EXIF orientation is "
            f"{picture.orientation}, not {mask.orientation} as the mask's; save both upright, without an EXIF orientation"
        )
    return Picture(rgb, labels)


def classes_of(mask: Opened, classes: ClassList) -> np.ndarray:
    """The class of each pixel, uint8 (H, W), VOID for void; DataError names the first pixel whose mark is unknown."""
    image, path, listed = mask.image, mask.where, classes.file.name
    if image.format == "JPEG":
        raise DataError(f"{path}: is a JPEG, which does not keep exact values; save masks as PNG")
    if mask.deep:
        raise DataError(f"{path}: has 16 bits or more a pixel (mode {image.mode}); save it with 8, values 0 to 255")
    has_numbers = image.mode in ("L", "P", "1", "LA")
    if classes.by_colour or image.mode == "LA":
        mask.refuse_transparent("give pixels without a class the value or colour of void instead")
    if classes.by_colour:
        rgb = np.asarray(image.convert("RGB")).astype(np.int64)
        marks = (rgb[..., 0] << 16) + (rgb[..., 1] << 8) + rgb[..., 2]
    elif has_numbers:
        marks = np.asarray(image.getchannel(0) if image.mode == "LA" else image).astype(np.int64)
    else:
        raise DataError(
            f"{path}: is a mask of colours (mode {image.mode}), but {listed} gives numbers; give the colour of each class "
            "there, or save the mask with one value a pixel"
        )
    known, numbers = classes.codes()
    position = np.minimum(np.searchsorted(known, marks), known.size - 1)
    unknown = known[position] != marks
    if unknown.any():
        row, column = (int(k) for k in np.argwhere(unknown)[0])
        advice = "give it to a class there, or to void if such pixels count for nothing"
        if classes.by_colour and has_numbers:
            advice = f"this mask has numbers (mode {image.mode}), so give the number of each class there"
        raise DataError(
            f"{path}: {shown(int(marks[row, column]), classes.by_colour)} at row {row}, column {column} (and "
            f"{unknown.sum()} pixels in all are of no class) is not in {listed}; {advice}"
        )
    return np.asarray(numbers[position])
