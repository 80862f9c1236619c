"""Options of data sets as fields of dataclasses: types and bounds are declared there once, and checked here alone.

    @dataclass(frozen=True)
    class Options:
        root: Annotated[Path, Values("the folder that holds the pictures")]
        features: FeatureOptions
        size: Annotated[str, one_of("small", "large")] = "small"
        n_train: Whole | None = None

An option without a default must be given; null stands for the default. A field that is such a dataclass itself, as
`features` here, has further options of the same data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from gapwise.records import Facts

Made = TypeVar("Made")


class OptionError(ValueError):
    """An option of a data set that is wrong whatever the data: names the key and says what was expected."""


class Values(NamedTuple):
    """What an option may be, besides its type."""

    expected: str
    """As messages say it"""
    allowed: Callable[[Any], bool] = lambda value: True


def one_of(*choices: object) -> Values:
    """The values that are listed."""
    expected = ", ".join(map(str, choices))
    return Values(f"one of {expected}" if len(choices) > 1 else expected, lambda value: value in choices)


def between(least: int, most: int) -> Values:
    """Whole numbers from `least` to `most`."""
    return Values(f"a whole number from {least} to {most:,}", lambda value: least <= value <= most)


def at_least(least: int) -> Values:
    """Whole numbers from `least` on."""
    return Values(f"a whole number >= {least}", lambda value: value >= least)


Natural = Annotated[int, at_least(0)]
Whole = Annotated[int, at_least(1)]
Positive = Annotated[float, Values("a number > 0", lambda value: value > 0)]
NonNegative = Annotated[float, Values("a number >= 0", lambda value: value >= 0)]
Share = Annotated[float, Values("a number between 0 and 1", lambda value: 0 < value < 1)]

TYPES: dict[Any, tuple[str, Callable[[Any], bool], Callable[[Any], Any]]] = {
    bool: ("true or false", lambda value: type(value) is bool, bool),
    int: ("a whole number", lambda value: type(value) is int, int),
    float: ("a number", lambda value: type(value) in (int, float) and math.isfinite(value), float),
    str: ("text", lambda value: isinstance(value, str) and value.strip() != "", str),
    Path: ("a file", lambda value: isinstance(value, str | Path) and str(value) != "", Path),
    dict: ("a group of keys", lambda value: isinstance(value, Mapping), dict),
    list: ("a list", lambda value: isinstance(value, list | tuple), list),
    object: ("a value", lambda value: True, lambda value: value),
}
"""Types of options: what messages call them, whether a value is one, and how it is kept."""


def options_of(cls: type[Made], options: Facts) -> Made:
    """`options` of a data set as an instance of the dataclass `cls`; OptionError names one that is unknown or wrong."""
    known = names_of(cls)
    for name in options:
        if name not in (*known, "name"):
            raise OptionError(f"dataset.{name}: no such option of this data set; there are: {', '.join(known)}")
    return taken_from(cls, options)


def names_of(cls: type) -> list[str]:
    """The options of a dataclass, those of its parts among them."""
    kinds = get_type_hints(cls, include_extras=True)
    own = [field.name for field in fields(cls) if not is_dataclass(kinds[field.name])]
    parts = [names_of(kinds[field.name]) for field in fields(cls) if is_dataclass(kinds[field.name])]
    return [*own, *(name for part in parts for name in part)]


def taken_from(cls: type[Made], options: Facts) -> Made:
    """The options of the dataclass `cls` among others; OptionError names one that is wrong."""
    given, kinds = {}, get_type_hints(cls, include_extras=True)
    for field in fields(cls):  # type: ignore[arg-type]
        kind = kinds[field.name]
        if is_dataclass(kind):
            given[field.name] = taken_from(kind, options)  # type: ignore[arg-type]
        elif options.get(field.name) is not None:
            given[field.name] = _checked(field.name, options[field.name], kind)
        elif field.default is MISSING:
            raise OptionError(f"dataset.{field.name}: missing; give {_rule(kind).expected}")
    return cls(**given)


def _checked(name: str, value: object, kind: Any) -> Any:
    """`value`, as the first of the types that `kind` joins keeps it."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    for each in kinds:
        if each is not NoneType:
            is_one, kept = TYPES[_base(each)][1:]
            if is_one(value) and _rule(each).allowed(value):
                return kept(value)
    expected = " or ".join(_rule(each).expected for each in kinds if each is not NoneType)
    raise OptionError(f"dataset.{name}: expected {expected}{', or null' if NoneType in kinds else ''}, got {value!r}")


def _base(kind: Any) -> Any:
    """The key in `TYPES` of a type."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(kind) or kind


def _rule(kind: Any) -> Values:
    return get_args(kind)[1] if get_origin(kind) is Annotated else Values(TYPES[_base(kind)][0])
