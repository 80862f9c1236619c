"""Readers of raw data: one file a data set, all behind `Reader`. A reader knows neither solver nor storage."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import extend_path
from typing import Any, Protocol

import numpy as np

__path__ = extend_path(__path__, __name__)  # parts of one's own, in a folder on PYTHONPATH that repeats this tree

Report = Callable[[int, int, str], None]
"""report(done, total, what): progress of a long step."""


class MapBlocks(Protocol):
    """map_blocks(fn, items): fn(item) for every item, in order, wherever the computation runs."""

    def __call__(self, fn: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]: ...


class Sink(Protocol):
    """Where a reader puts what it made; `storage.features.FeatureWriter` is one."""

    def append(self, split: str, **arrays: np.ndarray) -> None:
        """One block of `split`; arrays are concatenated on axis 0, offsets kept as ``<name>_ptr``."""

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        """A whole array; split "" means shared by all splits."""


class Reader(Protocol):
    """One data set with its options resolved and checked."""

    structure: str

    def source(self) -> dict[str, Any]:
        """What the features depend on besides the options (file names, sizes): cheap, JSON-able, part of the key."""

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> dict[str, Any]:
        """Write all arrays into `sink`; returns JSON-able facts (sizes, names of features, splits)."""


class DataError(ValueError):
    """Raw data that cannot be used: says which file, which field or line, what was expected."""


def open_dataset(name: str, options: Mapping[str, Any]) -> Reader:
    """The reader called `name`; ValueError lists those there are."""
    known = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)
    if name not in known:
        raise ValueError(f"dataset.name: there is no reader {name!r}; there are: {', '.join(known)}")
    if "root" in options and options["root"] is None:
        options = {**options, "root": _data_folder(name)}
    reader: Reader = import_module(f"{__name__}.{name}").open(options)
    return reader


def _data_folder(name: str) -> str:
    """Where the raw data of reader `name` lie on this machine, when the configuration leaves that open."""
    folder = Path(os.environ.get("GAPWISE_DATA", "../shared/data")) / FOLDERS.get(name, name)
    if not folder.is_dir():
        raise DataError(
            f"dataset.root: must be given, as in dataset.root=...; there is no {folder} (GAPWISE_DATA={folder.parent})"
        )
    return str(folder)


FOLDERS = {"conll": "conll2000", "weizmann": "horses"}
"""Folders of raw data under $GAPWISE_DATA that are not called as their reader."""
