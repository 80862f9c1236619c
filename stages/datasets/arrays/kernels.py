"""Options that turn rows of features with labels into a problem over kernels (`stages.problems.multiclass.kernel`).

``kernel``: linear, poly or rbf; null: weights, without a kernel. ``gamma`` (poly, rbf; null: 1 / columns), ``coef0`` and
``degree`` (poly; 0 and 3). That module has the formulas. Any reader of dense rows with the structure `multiclass` can have
the part `KernelOptions` among its options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import OptionError, Sink
from gapwise.stages.datasets.common.options import NonNegative, Positive, Whole, one_of

OF_KERNEL = {"linear": (), "poly": ("gamma", "coef0", "degree"), "rbf": ("gamma",)}
NAMES = tuple(OF_KERNEL)


@dataclass(frozen=True)
class KernelOptions:
    """The options; None: no kernel, or the kernel's default."""

    kernel: Annotated[str, one_of(*NAMES)] | None = None
    gamma: Positive | None = None
    coef0: NonNegative | None = None
    degree: Whole | None = None

    def __post_init__(self) -> None:
        used = OF_KERNEL[self.kernel] if self.kernel else ()
        for key in ("gamma", "coef0", "degree"):
            if getattr(self, key) is not None and key not in used:
                having = [kernel for kernel, keys in OF_KERNEL.items() if key in keys]
                raise OptionError(
                    f"dataset.{key}: only with dataset.kernel={' or '.join(having)}, got kernel {self.kernel}"
                )

    def write(self, sink: Sink, x: np.ndarray, classes: int) -> Record:
        """Store the training rows x (m, D) as points of the kernel; returns its facts. Without a kernel, there are none."""
        if self.kernel is None:
            return {}
        write_points(sink, x)
        defaults = {"gamma": 1.0 / x.shape[1], "coef0": 0.0, "degree": 3}
        given = {key: getattr(self, key) for key in OF_KERNEL[self.kernel]}
        facts = {key: defaults[key] if value is None else value for key, value in given.items()}
        return {"kernel": self.kernel, **facts, "d": 2 * classes * len(x)}


def write_points(sink: Sink, x: np.ndarray) -> None:
    """Store training rows also as points, and which point each of them is."""
    sink.put("", "points", x)
    sink.put("train", "row", np.arange(len(x), dtype=np.int64))
