"""What readers of a user's own class share: its splits, the data files that it declares, and new input for it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gapwise.records import Facts, Record
from gapwise.stages.datasets import DataError, offered
from gapwise.stages.datasets.inputs import NewInput

VALIDATION: dict[str, tuple[str, ...]] = {"split": ()}
"""Values of `dataset.validation` that these readers understand themselves."""

UNDECLARED = (
    "%s does not define files(): this run is known by the %s and arguments only. If %s reads data files, let files() return "
    "their paths; otherwise edited data will give the old result"
)
"""A warning, for the class, what its code is called, and what reads."""


def splits_of(validation: str | None) -> tuple[str, ...]:
    """The splits that a class serves; with `validation`, which can only be "split", also "validation"."""
    return ("train", "test") if validation is None else ("train", "validation", "test")


def declared_files(name: str, key: str, ask: Callable[[], Iterable[str | Path]]) -> dict[str, Path]:
    """The files that class `name` declares, as `Reader.files` returns them; DataError, beginning with `key`, for others.

    `ask` calls the class; it raises ValueError if that fails.
    """
    try:
        declared = [Path(file) for file in ask()]
    except ValueError as error:
        raise DataError(f"{key}: {error}") from error
    for file in declared:
        if not file.is_file():
            raise DataError(f"{key}: {name}.files names {file}, which is no file")
    return {f"{number} {file.name}": file for number, file in enumerate(declared)}


def new_split(raw: object, module: str, arguments: Facts) -> tuple[str, Record]:
    """The split and the arguments that new input `raw` names for a user's class; `arguments`: those of the training."""
    split = raw[0] if isinstance(raw, list) and len(raw) == 1 else raw
    given = {"split": split} if isinstance(split, str) else split
    if not isinstance(given, Mapping) or not isinstance(given.get("split"), str):
        raise DataError(
            f"input: {raw!r}: {module} reads its inputs itself; expected the name of a split that it can be made with, or "
            'all arguments that differ from training, such as {"split": "new", "n": 7}'
        )
    return given["split"], {**arguments, **{name: value for name, value in given.items() if name != "split"}}


def one_input(inputs: Sequence[str], module: str) -> NewInput:
    """The only one of `inputs`, a split's name or JSON; DataError otherwise."""
    if len(inputs) != 1:
        raise DataError(f"expected one split of {module}, got {len(inputs)} inputs; predict them one after the other")
    if not inputs[0].lstrip().startswith("{"):
        return NewInput(inputs[0])
    try:
        return NewInput(json.loads(inputs[0]))
    except ValueError as error:
        raise DataError(f"input: {inputs[0]}: not valid JSON ({error})") from error


def code_of(meta: Facts) -> str | None:
    """The class of the user's own that the facts of features name, as their reader says with CODE; else None."""
    found: Any = meta
    for key in offered(meta["dataset"]).code:
        found = found[key]
    return None if found is meta else str(found)


def with_code(meta: Facts, name: str) -> Record:
    """The same facts with another class of the user's own; DataError if they name none."""
    keys = offered(meta["dataset"]).code
    if not keys:
        raise DataError(f"oracle: {name} is not needed: {meta['dataset']} has no code of your own")
    made = inner = copy.deepcopy(dict(meta))
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = name
    return made
