"""A user's masks, and their classes: names, and the value or colour of each in a mask, from a small YAML file.

    classes:                       classes:                        classes: [background, horse]
      sky: 0                         sky: [128, 128, 128]          void: 255
      tree: 1                        tree: "#008000"
    void: 255                      void: [0, 0, 0]

Numbers are those of index or palette masks (a list of names counts from 0), colours those of RGB masks or of a palette.
`void`, which may be left out, marks pixels that count for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.datasets.vision.files import Opened, opened, size_of
from gapwise.stages.datasets.vision.pictures import Picture
from gapwise.stages.problems.losses import VOID

MOST_CLASSES = 254
EXAMPLE = "such as 'classes: {background: 0, horse: 1}' and 'void: 255'"
HEX = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True)
class ClassList:
    """Classes 0, 1, ... in the order of the file. A mark is a value, or a colour as 65536 R + 256 G + B."""

    file: Path
    names: tuple[str, ...]
    marks: tuple[int, ...]
    """The mark of each class in a mask."""
    void: int | None
    by_colour: bool
    """Whether masks show classes by colours."""

    def facts(self) -> Record:
        """Facts from which predicted masks get the same marks (`reader.Pictures`)."""
        marks = {"class_colours": [*map(rgb_of, self.marks)]} if self.by_colour else {"class_values": [*self.marks]}
        return {"class_names": [*self.names], **marks}

    def shown(self, mark: int) -> str:
        """A mark as messages show it."""
        return f"the colour {rgb_of(mark)}" if self.by_colour else f"the value {mark}"


def rgb_of(mark: int) -> list[int]:
    """Red, green and blue of a colour."""
    return [mark >> 16, mark >> 8 & 255, mark & 255]


def read_classes(file: Path) -> ClassList:
    """The classes of a YAML file; DataError names it and what is wrong."""
    try:
        content = _parsed(file)
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict) or not set(content) <= {"classes", "void"} or "classes" not in content:
        raise DataError(f"{file}: expected the key classes, and perhaps void, {EXAMPLE}")
    given = content["classes"]
    if isinstance(given, list):
        twice = [name for k, name in enumerate(given) if not isinstance(name, Hashable) or name in given[:k]]
        if twice:
            raise DataError(f"{file}: expected different names in classes; got {twice[0]!r}")
        given = {name: k for k, name in enumerate(given)}
    if not isinstance(given, dict) or not 2 <= len(given) <= MOST_CLASSES:
        raise DataError(f"{file}: classes must name 2 to {MOST_CLASSES} classes, {EXAMPLE}")
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{file}: the class {name!r} is no text; write it in quotes")
    named = [(f"the class {name}", mark) for name, mark in given.items()]
    if content.get("void") is not None:
        named.append(("void", content["void"]))
    marks = [_mark(file, owner, mark) for owner, mark in named]
    if len({by_colour for _, by_colour in marks}) > 1:
        raise DataError(
            f"{file}: some classes have numbers and others colours; expected one kind for all, and for void"
        )
    codes, n = [code for code, _ in marks], len(given)
    classes = ClassList(file, tuple(given), tuple(codes[:n]), codes[n] if len(codes) > n else None, marks[0][1])
    for k, code in enumerate(codes):
        if code in codes[:k]:
            same = classes.names[codes.index(code)]
            raise DataError(f"{file}: {[*given, 'void'][k]} and {same} both have {classes.shown(code)}")
    return classes


def _mark(file: Path, owner: str, given: object) -> tuple[int, bool]:
    """A mark, and whether it is a colour."""
    if isinstance(given, str) and HEX.fullmatch(given):
        return int(given[1:], 16), True
    values: list[int] = given if isinstance(given, list) and len(given) == 3 else [given]  # type: ignore[list-item]
    if not all(type(value) is int and 0 <= value <= 255 for value in values):
        raise DataError(
            f"{file}: {owner} has {given!r}; expected a number 0..255, three of them, [red, green, blue], or '#rrggbb'"
        )
    return int.from_bytes(values), len(values) == 3


def _parsed(file: Path) -> object:
    """What the YAML file holds; ValueError for keys that occur twice, which YAML's reader would pass over."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses keys that occur twice."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = [key for k, key in enumerate(keys) if key in keys[:k]]
            if twice:
                raise ValueError(f"line {node.start_mark.line + 1}: the key {twice[0]!r} occurs twice")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def load_masked(item: tuple[Path, Path], classes: ClassList) -> Picture:
    """A picture, uint8 (H, W, 3), and the classes of its pixels, uint8 (H, W); DataError names the file at fault.

    Both are turned upright as their EXIF data say. Where only one of them is said to be turned, the sizes must show that the
    mask was drawn on the upright picture.
    """
    picture, mask = (opened(path) for path in item)
    rgb, labels = picture.pixels(), classes_of(mask, classes)
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
    marked = [*classes.marks, *([] if classes.void is None else [classes.void])]
    order = np.argsort(marked)
    known = np.array(marked)[order]
    position = np.minimum(np.searchsorted(known, marks), known.size - 1)
    unknown = known[position] != marks
    if unknown.any():
        row, column = (int(k) for k in np.argwhere(unknown)[0])
        advice = "give it to a class there, or to void if such pixels count for nothing"
        if classes.by_colour and has_numbers:
            advice = f"this mask has numbers (mode {image.mode}), so give the number of each class there"
        raise DataError(
            f"{path}: {classes.shown(int(marks[row, column]))} at row {row}, column {column} (and "
            f"{unknown.sum()} pixels in all are of no class) is not in {listed}; {advice}"
        )
    return np.where(order == len(classes.names), VOID, order).astype(np.uint8)[position]
