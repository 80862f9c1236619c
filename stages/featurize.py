"""Featurize: from raw data to the memory-mapped feature store that all solvers share."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stages.datasets import DataError, MapBlocks, Report, open_dataset
from stages.problems import build, structure
from stages.problems.protocol import Problem
from storage.backend import Location
from storage.features import FeatureWriter, is_complete, open_features
from storage.files import DamagedError

log = logging.getLogger("gapwise")


class _DerivingSink:
    """Passes blocks on to the store together with what their structure derives from them (a Gram matrix, ...).

    `derived` sees the block and the shared arrays put before it, and checks it; errors name split and block.
    """

    def __init__(self, writer: FeatureWriter, name: str) -> None:
        self.writer = writer
        self.derived = structure(name).derived
        self.shared: dict[str, np.ndarray] = {}
        self.blocks: Counter[str] = Counter()

    def append(self, split: str, **arrays: np.ndarray) -> None:
        try:
            more = self.derived(**{**self.shared, **arrays})
        except ValueError as error:
            raise DataError(f"{split} block {self.blocks[split]}: {error}") from error
        self.writer.append(split, **arrays, **more)
        self.blocks[split] += 1

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.writer.put(split, name, array)
        if split == "":
            self.shared[name] = array


def featurize(
    dataset: Mapping[str, Any],
    target: Location,
    *,
    key: str,
    map_blocks: MapBlocks,
    report: Report,
    unchanged: Callable[[], None] = lambda: None,
) -> None:
    """Make the feature store `target` unless it exists undamaged.

    Parameters
    ----------
    dataset : mapping
        The resolved `dataset` group of the configuration.
    key : str
        Identifies data and options; stored with the features.
    unchanged : callable
        Called when all is read, before anything is kept; raises DataError if the raw data are no longer those of `key`.

    Raises
    ------
    DataError
        If the raw data cannot be used; names split and block if the structure refuses it. Nothing is left behind.
    """
    if is_complete(target):
        damage = damaged(target)
        if damage is None:
            return
        log.warning("%s: %s; the features are made again", target, damage)
    reader = open_dataset(dataset["name"], dataset)
    with FeatureWriter(target) as writer:
        facts = reader.featurize(_DerivingSink(writer, reader.structure), map_blocks, report)
        facts = {"key": key, "dataset": dataset["name"], "structure": reader.structure, **facts}
        # `derived` has checked every block, so that opening the store need not read all of it again
        writer.meta = {**facts, "checked": True}
        unchanged()


def damaged(target: Location) -> str | None:
    """What in a feature store differs from what was written, or None; reads the whole store once."""
    try:
        return open_features(target).damage()
    except DamagedError as error:
        return str(error)


def open_problem(features: Location, split: str) -> Problem:
    """The problem over one split of a feature store; arrays stay memory-mapped."""
    store = open_features(features)
    return build(store.meta["structure"], store.arrays(split), store.meta)
