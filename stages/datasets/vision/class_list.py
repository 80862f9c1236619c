"""The classes of a user's masks, from a small YAML file: their names, and the value or colour that each has in a mask.

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
from typing import TYPE_CHECKING

import numpy as np

from gapwise.stages.datasets import UNREADABLE, DataError
from gapwise.stages.problems.void import VOID

if TYPE_CHECKING:
    import yaml

Colour = tuple[int, int, int]
MOST_CLASSES = 254
EXAMPLE = "such as 'classes: {background: 0, horse: 1}' and 'void: 255'"
HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class ClassList:
    """Classes 0, 1, ... in the order of the file."""

    file: Path
    names: tuple[str, ...]
    marks: tuple[int, ...] | tuple[Colour, ...]
    """The value, or the colour, of each class in a mask."""
    void: int | Colour | None

    @property
    def by_colour(self) -> bool:
        """Whether masks show classes by colours."""
        return isinstance(self.marks[0], tuple)

    def codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted marks, int64, colours as 65536 R + 256 G + B; and the class of each, uint8, VOID for void."""
        marks = [*self.marks, *([] if self.void is None else [self.void])]
        classes = [*range(len(self.names)), *([] if self.void is None else [VOID])]
        codes = np.array([_code(mark) for mark in marks])
        order = np.argsort(codes)
        return codes[order], np.array(classes, np.uint8)[order]


def _code(mark: int | Colour) -> int:
    return mark if isinstance(mark, int) else (mark[0] << 16) + (mark[1] << 8) + mark[2]


def shown(code: int, by_colour: bool) -> str:
    """A mark as messages show it."""
    return f"the colour [{code >> 16}, {code >> 8 & 255}, {code & 255}]" if by_colour else f"the value {code}"


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
        given = _unique(file, given)
    if not isinstance(given, dict) or not 2 <= len(given) <= MOST_CLASSES:
        raise DataError(f"{file}: classes must name 2 to {MOST_CLASSES} classes, {EXAMPLE}")
    names = []
    for name in given:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{file}: the class {name!r} is no text; write it in quotes")
        names.append(name)
    marks = [_mark(file, f"the class {name}", mark) for name, mark in given.items()]
    void = None if content.get("void") is None else _mark(file, "void", content["void"])
    every = [*marks, *([] if void is None else [void])]
    if len({type(mark) for mark in every}) > 1:
        raise DataError(
            f"{file}: some classes have numbers and others colours; expected one kind for all, and for void"
        )
    if len(set(every)) < len(every):
        twice = next(k for k, mark in enumerate(every) if mark in every[:k])
        raise DataError(
            f"{file}: {[*names, 'void'][twice]} and {names[every.index(every[twice])]} both have "
            f"{shown(_code(every[twice]), isinstance(every[twice], tuple))}"
        )
    return ClassList(file, tuple(names), tuple(marks), void)  # type: ignore[arg-type]


def _unique(file: Path, names: list[object]) -> dict[object, int]:
    """Names counted from 0."""
    numbers: dict[object, int] = {}
    for name in names:
        if not isinstance(name, Hashable) or name in numbers:
            raise DataError(f"{file}: expected different names in classes; got {name!r}")
        numbers[name] = len(numbers)
    return numbers


def _mark(file: Path, owner: str, given: object) -> int | Colour:
    if isinstance(given, str) and (match := HEX.fullmatch(given)):
        red, green, blue = (int(part, 16) for part in match.groups())
        return red, green, blue
    values = given if isinstance(given, list) and len(given) == 3 else [given]
    levels = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255]
    if len(levels) == len(values):
        return (levels[0], levels[1], levels[2]) if len(levels) == 3 else levels[0]
    raise DataError(
        f"{file}: {owner} has {given!r}; expected a number 0..255, three of them, [red, green, blue], or '#rrggbb'"
    )


def _parsed(file: Path) -> object:
    """What the YAML file holds; ValueError for keys that occur twice, which YAML's reader would pass over."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses keys that occur twice."""

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
        keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for k, key in enumerate(keys) if key in keys[:k]]
        if twice:
            raise ValueError(f"line {node.start_mark.line + 1}: the key {twice[0]!r} occurs twice")
        return {
            key: loader.construct_object(value, deep=True) for key, (_, value) in zip(keys, node.value, strict=True)
        }

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
