"""All features of a reader, in memory."""

from __future__ import annotations

from gapwise.stages.datasets import Blocks as MemorySink
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem


def read(reader) -> tuple[MemorySink, dict]:
    """All features of `reader`, and its meta."""
    sink = MemorySink(reader.structure)
    meta = reader.featurize(sink, map, lambda done, total, activity: None)
    return sink, meta


def problems(reader) -> tuple[Problem, Problem, MemorySink, dict]:
    """Train and test problem of `reader`."""
    sink, meta = read(reader)
    train, test = (build(reader.structure, sink.arrays(split), meta) for split in ("train", "test"))
    return train, test, sink, meta
