"""A user's own oracle in Python as a data set: the object holds the data; the store gets truths and coordinates.

There is no working `encoder`, because only the object knows the input of a block. To predict new inputs, let the class
serve them as a split of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.datasets import DataError, Encoder, MapBlocks, Report, Sink
from stages.problems.user_code import oracle_source, told

if TYPE_CHECKING:
    from stages.problems.python_oracle import Oracle

EVERY = 1000
"""Number of blocks between two progress reports."""


def encoder(meta: Mapping[str, Any], shared: Mapping[str, np.ndarray]) -> Encoder:
    """Always raises DataError, which says what to do instead."""
    raise DataError(
        f"python_oracle: {meta['oracle']} reads its inputs itself, so no features of new inputs can be made here; let the "
        "class serve them as a split of its own (its argument `split`)"
    )


def open(options: Mapping[str, Any]) -> PythonOracleReader:
    """`options`: ``oracle`` = module:Class, and ``arguments`` of the class besides the split."""
    return PythonOracleReader(str(options["oracle"]), dict(options.get("arguments") or {}))


class PythonOracleReader:
    """Blocks of a `stages.problems.python_oracle.Oracle`."""

    structure = "python_oracle"

    def __init__(self, oracle: str, arguments: dict[str, Any]) -> None:
        self.oracle, self.arguments = oracle, arguments

    def files(self) -> dict[str, Path]:
        """The data files that the oracle declares."""
        from stages.problems.python_oracle import oracle_class

        try:
            declared = [Path(file) for file in oracle_class(self.oracle).files(**self.arguments)]
        except Exception as error:
            raise DataError(f"dataset.oracle: {self.oracle}.files: {told(error)}") from error
        for file in declared:
            if not file.is_file():
                raise DataError(f"dataset.oracle: {self.oracle}.files names {file}, which is no file")
        return {f"{number} {file.name}": file for number, file in enumerate(declared)}

    def source(self) -> dict[str, Any]:
        """The code of the oracle."""
        try:
            return {"oracle": oracle_source(self.oracle)}
        except ValueError as error:
            raise DataError(f"dataset.oracle: {error}") from error

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> dict[str, Any]:
        """Write both splits; checks what the solver relies on once, on every block."""
        from stages.problems.python_oracle import load_oracle

        d = 0
        for split in ("train", "test"):
            try:
                oracle = load_oracle(self.oracle, split, self.arguments)
            except ValueError as error:
                raise DataError(f"dataset.oracle: {error}") from error
            try:
                blocks, d = len(oracle), int(oracle.d)
            except Exception as error:
                raise DataError(f"{self.oracle}: expected __len__ and d, blocks and weights: {told(error)}") from error
            if blocks < 1:
                raise DataError(f"{self.oracle}: the {split} split has no blocks")
            sink.put(split, "split", np.frombuffer(split.encode(), np.uint8))
            for i in range(len(oracle)):
                try:
                    arrays = _block(oracle, split, i)
                except DataError:
                    raise
                except Exception as error:
                    raise DataError(f"{self.oracle}: {split} block {i}: {told(error)}") from error
                sink.append(split, **arrays)
                if (i + 1) % EVERY == 0:
                    report(i + 1, len(oracle), f"python_oracle {split}")
        facts = {"oracle": self.oracle, "arguments": self.arguments, "source": oracle_source(self.oracle)}
        return {**facts, "d": d}


def _block(oracle: Oracle, split: str, i: int) -> dict[str, np.ndarray]:
    """Truth and coordinates of a block; DataError if they cannot be used."""
    where = f"{type(oracle).__name__}: {split} block {i}"
    truth, ids = np.asarray(oracle.truth(i)), oracle.coordinates(i)
    if truth.ndim != 1 or not truth.size or truth.min() < 0 or truth.max() >= oracle.labels:
        raise DataError(f"{where}: truth must be a row of 0, ..., {oracle.labels - 1}, got {truth}")
    size = oracle.d if ids is None else len(ids)
    features = np.asarray(oracle.features(i, truth), float)
    if features.shape != (size,) or not np.isfinite(features).all():
        raise DataError(f"{where}: features of the truth must be {size} finite numbers, got shape {features.shape}")
    if oracle.loss(i, truth) != 0.0:
        raise DataError(f"{where}: the loss of the truth must be 0, is {oracle.loss(i, truth)}")
    found = {"labels": truth.astype(np.int64)}
    if ids is None:
        return found
    ids = np.asarray(ids, np.int64)
    if ids.size and (ids.min() < 0 or ids.max() >= oracle.d or np.unique(ids).size != ids.size):
        raise DataError(f"{where}: coordinates must be different numbers in 0, ..., {oracle.d - 1}")
    return {**found, "ids": ids}
