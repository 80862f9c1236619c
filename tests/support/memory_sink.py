"""A sink that keeps everything in memory, as the feature store would hand it back."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from stages.problems import build, structure
from stages.problems.protocol import Problem


class MemorySink:
    def __init__(self, structure_name: str):
        self.derived = structure(structure_name).derived
        self.blocks: dict[str, dict[str, list]] = defaultdict(lambda: defaultdict(list))
        self.whole: dict[str, dict[str, np.ndarray]] = defaultdict(dict)

    def append(self, split, **arrays):
        for name, array in {**arrays, **self.derived(**{**self.whole[""], **arrays})}.items():
            self.blocks[split][name].append(np.asarray(array))

    def put(self, split, name, array):
        self.whole[split][name] = np.asarray(array)

    def arrays(self, split) -> dict[str, np.ndarray]:
        result = {**self.whole[""], **self.whole[split]}
        for name, parts in self.blocks[split].items():
            result[name] = np.concatenate(parts)
            result[f"{name}_ptr"] = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return result


def read(reader) -> tuple[MemorySink, dict]:
    """All features of `reader`, and its meta."""
    sink = MemorySink(reader.structure)
    meta = reader.featurize(sink, map, lambda done, total, what: None)
    return sink, meta


def problems(reader) -> tuple[Problem, Problem, MemorySink, dict]:
    """Train and test problem of `reader`."""
    sink, meta = read(reader)
    train, test = (build(reader.structure, sink.arrays(split), meta) for split in ("train", "test"))
    return train, test, sink, meta
