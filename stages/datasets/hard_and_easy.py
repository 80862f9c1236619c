"""One hard example among easy ones: the toy problem with which O16 (App. C) explains gap sampling. It reads no files.

n examples of a multiclass problem with K classes have orthogonal features x_i = s e_i, so that blocks do not touch each
other. The truth of the hard example, in the middle, costs 1 against each of the K - 1 other classes, that of an easy one
against a single class. With s^2 = 0.4 lambda n, Frank-Wolfe steps on the hard block have the lengths 1, 1/2, 1/3, ...: it is
optimal after exactly K - 1 of them, an easy one after 1. So uniform sampling needs about n (K - 1) steps, and gap sampling
with exact gaps n + K - 2.

Options: ``n``, ``classes``, and ``lam``, the lambda to which features are scaled: the counts hold there. n = K = 40 is our
choice; O16's argument is for any.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.common.options import Positive, between

HARD, EASY = 0, 1
SHARE = 0.4
"""||x||^2 / (lambda n): at most 1/2, for the steps to be 1/t."""
MOST = 10_000
"""Of examples and of classes."""


@dataclass(frozen=True)
class HardAndEasy(Reader):
    """The examples that train, which test as well."""

    n: Annotated[int, between(2, MOST)] = 40
    classes: Annotated[int, between(2, MOST)] = 40
    lam: Positive = 0.01
    structure = "multiclass"

    def files(self) -> dict[str, Path]:
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """The same examples train and test."""
        cost = np.zeros((self.classes, self.classes))
        cost[HARD] = 1.0
        cost[HARD, HARD] = 0.0
        cost[EASY, HARD] = 1.0
        labels = np.full(self.n, EASY, np.uint8 if self.classes <= 256 else np.int16)
        labels[self.n // 2] = HARD
        x = (np.sqrt(SHARE * self.lam * self.n) * np.eye(self.n)).astype(np.float32)
        sink.put("", "cost", cost)
        for split in ("train", "test"):
            sink.put(split, "x", x)
            sink.put(split, "labels", labels)
        return {"classes": self.classes, "d": self.classes * self.n, "n_train": self.n, "n_test": self.n}
