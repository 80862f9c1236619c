"""Checks of what a model's or a store's files say of themselves, before anything is made of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gapwise.records import Facts
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.problems import capabilities
from gapwise.storage.files import DamagedError

NAMES = ("label_names", "class_names")


def labels_of(meta: Facts) -> list[Label]:
    """The labels of a data set as its user has them, from the facts of its features; empty for labels without names."""
    return list(meta.get("label_names", meta.get("class_names", ())))


def check_features(meta: Facts, weights: int, where: object) -> None:
    """DamagedError, beginning with `where`, unless the facts of features are of the right kind and fit so many weights."""
    for name in ("dataset", "structure"):
        refuse(where, name, meta.get(name), isinstance(meta.get(name), str), "a name")
    d = meta.get("d", weights)
    refuse(where, "d", d, _is_count(d) and d == weights, f"{weights:,}, as many as there are weights")
    try:
        counts = capabilities(meta["structure"]).counts
    except ValueError as error:
        raise DamagedError(f"{where}: structure: {error}") from error
    for name in counts:
        fits = _is_count(meta.get(name)) and 1 <= meta[name] <= weights
        refuse(where, name, meta.get(name), fits, f"a whole number from 1 to {weights:,}, the number of weights")
    for name in NAMES:
        names = meta.get(name, [])
        refuse(where, name, names, isinstance(names, list), "a list of names")


@contextlib.contextmanager
def fitting(where: object) -> Iterator[None]:
    """Turn what any other fact of the wrong kind, or array of the wrong size, causes into a DamagedError."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise DamagedError(
            f"{where}: what it says about its features does not fit their arrays ({type(error).__name__}: {error}); it was "
            "changed, or is damaged: make it again"
        ) from error


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def refuse(where: object, name: str, value: object, fits: bool, expected: str) -> None:
    """DamagedError, beginning with `where`, unless the fact called `name` `fits`; says what was `expected`."""
    if not fits:
        got = "it is missing" if value is None else f"got {str(value)[:60]!r}"
        raise DamagedError(f"{where}: {name}: expected {expected}, {got}; it was changed, or is damaged: make it again")
