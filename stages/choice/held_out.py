"""Blocks that are held out, and what models of falling lambdas are worth on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gapwise.records import Facts
from gapwise.stages.choice.criteria import Criterion, refuse_unmeasured
from gapwise.stages.model.predict import predict
from gapwise.stages.problems import build, structure
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.features import open_features


class Held(NamedTuple):
    """Held-out blocks, as the `split` of a feature store, or in memory."""

    structure: str
    problem: Problem
    arrays: Mapping[str, np.ndarray]
    """what the structure's measures read"""
    split: str = "train"

    @classmethod
    def of(cls, name: str, arrays: Mapping[str, np.ndarray], meta: Facts, split: str = "train") -> Held:
        """The blocks of a structure's arrays."""
        return cls(name, build(name, arrays, meta), arrays, split)

    @classmethod
    def stored(cls, features: Location, split: str) -> Held:
        """A split of a feature store."""
        store = open_features(features)
        return cls.of(store.meta["structure"], store.arrays(split), store.meta, split)

    def refuse_unmeasured(self, by: Criterion) -> None:
        """Raise ValueError if these blocks do not have the criterion."""
        refuse_unmeasured("criterion", by, self.problem, self.arrays, self.structure)

    def values(self, w: np.ndarray, by: Criterion, spread: Spread = HERE) -> np.ndarray:
        """The task losses of the blocks at w, (blocks,), or the criterion of all together, (1,)."""
        labels, losses = predict(self.problem, w, spread, self.split)
        return losses if by.is_loss else np.array([self.measures(labels)[by.name]])

    def measures(self, labels: np.ndarray) -> dict[str, float]:
        """The structure's measures of predicted labels, flat like truth."""
        return structure(self.structure).metrics(self.problem, self.arrays, labels)


def of_each(
    models: Iterable[np.ndarray], of: Callable[[np.ndarray], Any], done: Callable[[int], object] = lambda count: None
) -> np.ndarray:
    """`of(w)` of each model, stacked; models that are equal to the one before are not asked again, as decoding takes time.

    `done` hears how many there are so far.
    """
    rows: list[Any] = []
    before: np.ndarray | None = None
    for w in models:
        rows.append(rows[-1] if before is not None and np.array_equal(w, before) else of(w))
        before = w
        done(len(rows))
    return np.array(rows)
