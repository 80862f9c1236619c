"""Featurize: raw data to the memory-mapped feature store that all solvers share (DESIGN 3.3, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stages.datasets import MapBlocks, Report, open_dataset
from stages.problems import build, structure
from stages.problems.protocol import Problem
from storage.features import FeatureWriter, is_complete, open_features


class _DerivingSink:
    """Hands blocks on to the store together with what their structure derives from them (a Gram matrix, ...)."""

    def __init__(self, writer: FeatureWriter, name: str) -> None:
        self.writer = writer
        self.derived = structure(name).derived

    def append(self, split: str, **arrays: np.ndarray) -> None:
        self.writer.append(split, **arrays, **self.derived(**arrays))

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.writer.put(split, name, array)


def featurize(dataset: Mapping[str, Any], target: Path, *, key: str, map_blocks: MapBlocks, report: Report) -> None:
    """Make the feature store `target` unless it is there.

    Parameters
    ----------
    dataset : mapping
        The resolved `dataset` group of the configuration.
    key : str
        Identifies data and options; kept with the features.

    Raises
    ------
    DataError
        Raw data that cannot be used; nothing is left behind.
    """
    if is_complete(target):
        return
    reader = open_dataset(dataset["name"], dataset)
    target.parent.mkdir(parents=True, exist_ok=True)
    with FeatureWriter(target) as writer:
        facts = reader.featurize(_DerivingSink(writer, reader.structure), map_blocks, report)
        writer.meta = {"key": key, "dataset": dataset["name"], "structure": reader.structure, **facts}


def open_problem(features: Path, split: str) -> Problem:
    """The problem over one split of a feature store; arrays stay memory-mapped."""
    store = open_features(features)
    return build(store.meta["structure"], store.arrays(split), store.meta)
