"""What tasks, contestants and the measuring share: units with their truth, figures of merit, tuning by validation."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gapwise.records import Facts

HELD_OUT = 0.2
"""Share of the training units on which settings are chosen: the default of our estimators."""
GAMMAS = ("scale", 0.01, 0.003)
"""Of RBF kernels, ours and others'."""
Setting: TypeAlias = Facts
Labels: TypeAlias = Any
"""What is predicted for one unit: a label for each row, a set of links, scores."""


class Part(NamedTuple):
    """Units such as sentences or pictures."""

    x: Sequence[Any]
    """a unit each: tokens as lists of attributes, or an array (rows, columns)"""
    y: Sequence[Any]
    """the labels of a unit's rows; None where a row has none to learn from"""
    truth: Sequence[Any]
    """what predicted labels of the unit are compared with"""
    weight: Sequence[Any] | None = None
    """weights of a unit's rows, such as pixels; None: all alike"""

    def take(self, chosen: np.ndarray) -> Part:
        """The units with these numbers."""
        return Part(*(None if whole is None else [whole[i] for i in chosen] for whole in self))  # type: ignore[arg-type]


class Figure(NamedTuple):
    """A figure of merit."""

    name: str
    of: Callable[[np.ndarray], float]
    """from the sum of the counts of all units"""
    low: bool
    """whether less is better"""

    def loss(self, sums: np.ndarray) -> float:
        """Less is better."""
        return self.of(sums) if self.low else -self.of(sums)


@dataclass(frozen=True)
class Judge:
    """How predictions become figures."""

    counts: Callable[[Any, Labels], Sequence[float]]
    """of one unit, from its truth and its predicted labels"""
    figures: tuple[Figure, ...]
    """settings are chosen by the first"""

    def table(self, part: Part, predicted: Sequence[Labels]) -> np.ndarray:
        """Counts (units, k)."""
        pairs = zip(part.truth, predicted, strict=True)
        return np.array([self.counts(truth, labels) for truth, labels in pairs], float)


class Data(NamedTuple):
    """One split of a task."""

    train: Part
    test: Part
    text: Sequence[Any] = ()
    """unlabelled units, for tasks that have them"""
    words: Sequence[str] = ()
    """what a command of this size says of the data set"""


class Tuned(NamedTuple):
    """A model whose settings were chosen on held-out units, and which was trained again on all."""

    predict: Callable[[Sequence[Any]], Sequence[Labels]]
    setting: str
    size: int
    """bytes of the saved model"""
    note: str = ""
    extra_seconds: float = 0.0
    """CPU seconds of other processes"""


class Asked(NamedTuple):
    """What a contestant gets."""

    data: Data
    judge: Judge
    seed: int
    seconds: float
    """CPU seconds after which no further setting is tried"""
    folder: Path
    """scratch"""


@dataclass(frozen=True)
class Contestant:
    """Someone who takes part."""

    says: str
    tune: Callable[[Asked], Tuned]
    needs: tuple[str, ...] = ()
    """modules that must be there"""
    ours: bool = False
    warm_up: Callable[[Asked], None] = field(default=lambda asked: None)
    """compiles or imports what training will use; not counted"""

    def missing(self) -> str | None:
        """Why it cannot take part."""
        for module in self.needs:
            try:
                import_module(module)
            except ImportError:
                package = module.partition(".")[0]
                return f'{package} is not installed; pip install "gapwise[practice]" brings it'
        return None


Predict: TypeAlias = Callable[[Sequence[Any]], Sequence[Labels]]
Fit: TypeAlias = Callable[[Part, Setting, Path], tuple[Predict, int]]
"""fit(training units, setting, scratch folder): a function that predicts, and the bytes of the saved model."""


def by_validation(fit: Fit, grid: Sequence[Setting]) -> Callable[[Asked], Tuned]:
    """Every setting is fitted on four fifths of the units; the best on the others is fitted again on all.

    The grid begins with the package's default. No further setting is tried once it and the last fit would exceed the limit.
    """

    def tune(asked: Asked) -> Tuned:
        order = np.random.default_rng(asked.seed).permutation(len(asked.data.train.x))
        held = round(HELD_OUT * order.size)
        rest, part = asked.data.train.take(np.sort(order[held:])), asked.data.train.take(np.sort(order[:held]))
        lead, begun, longest = asked.judge.figures[0], time.process_time(), 0.0
        losses: list[float] = []
        for setting in grid:
            before = time.process_time()
            if losses and before - begun + 2.5 * longest > asked.seconds:
                break
            predict, _ = fit(rest, setting, asked.folder)
            losses.append(lead.loss(asked.judge.table(part, predict(part.x)).sum(axis=0)))
            longest = max(longest, time.process_time() - before)
        best = int(np.nanargmin(losses))
        predict, size = fit(asked.data.train, grid[best], asked.folder)
        note = f"{len(losses)} of {len(grid)} settings within {asked.seconds:g} s" if len(losses) < len(grid) else ""
        edge = " (last of the grid)" if len(grid) > 1 and grid[best] in (min_max(grid)) else ""
        return Tuned(predict, words(grid[best]) + edge, size, note)

    return tune


def min_max(grid: Sequence[Setting]) -> list[Setting]:
    """The settings with the least and the largest value, of a grid of one number."""
    if any(len(setting) != 1 or isinstance(next(iter(setting.values())), str) for setting in grid):
        return []
    ordered = sorted(grid, key=lambda setting: next(iter(setting.values())))
    return [ordered[0], ordered[-1]]


def words(setting: Setting) -> str:
    """A setting as it is shown."""
    return ", ".join(
        f"{name} = {value:g}" if isinstance(value, float) else f"{name} = {value}" for name, value in setting.items()
    )


def pickled(model: object) -> int:
    """Bytes of a model saved as scikit-learn's users do."""
    return len(pickle.dumps(model))
