"""Options that turn rows of features with labels into a problem over kernels (`stages.problems.multiclass.kernel`).

``kernel``: linear, poly or rbf; null: weights, without a kernel. ``gamma`` (poly, rbf; null: 1 / columns), ``coef0`` and
``degree`` (poly; 0 and 3). That module has the formulas. Any reader of dense rows with the structure
`multiclass` can offer them: its options have the part `KernelOptions`, its `open` returns ``with_kernel(reader, part)``, and
it lists `OPTIONS` in its ``LATER``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar, cast

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import MapBlocks, OptionError, Reader, Report, Sink
from gapwise.stages.datasets.offers.options import NonNegative, Positive, Whole, names_of, one_of

OF_KERNEL = {"linear": (), "poly": ("gamma", "coef0", "degree"), "rbf": ("gamma",)}
NAMES = tuple(OF_KERNEL)
R = TypeVar("R", bound=Reader)


@dataclass(frozen=True)
class KernelOptions:
    """The options; None: no kernel, or the kernel's default."""

    kernel: Annotated[str, one_of(*NAMES)] | None = None
    gamma: Positive | None = None
    coef0: NonNegative | None = None
    degree: Whole | None = None


OPTIONS = (*names_of(KernelOptions),)


@dataclass(frozen=True)
class Kernelized:
    """A reader whose training rows are also the points of a kernel."""

    reader: Reader
    kernel: Facts
    """kernel, and those of gamma, coef0 and degree that it has; gamma may be None"""
    structure: str = "multiclass"

    def files(self) -> Mapping[str, Path]:
        return self.reader.files()

    def source(self) -> Record:
        return self.reader.source()

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """What the reader writes, with the points; facts of the kernel."""
        into = WithPoints(sink)
        facts = self.reader.featurize(into, map_blocks, report)
        return {**facts, **self.facts(into.shape, int(facts["classes"]))}

    def facts(self, shape: tuple[int, ...], classes: int) -> Record:
        """What the structure needs to know, given the shape of the points (m, D)."""
        m, width = shape
        known = {**self.kernel, **({"gamma": 1.0 / width} if self.kernel.get("gamma", 1.0) is None else {})}
        return {**known, "d": 2 * classes * m}


class WithPoints:
    """A sink that also stores the training rows as points, and which point each of them is."""

    def __init__(self, sink: Sink) -> None:
        self.sink, self.shape = sink, (0, 0)
        self.append: Callable[..., None] = sink.append

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        """A whole array."""
        self.sink.put(split, name, array)
        if (split, name) == ("train", "x"):
            self.shape = array.shape
            self.sink.put("", "points", array)
            self.sink.put("train", "row", np.arange(len(array), dtype=np.int64))


def with_kernel(reader: R, options: KernelOptions) -> R | Kernelized:
    """`reader`, over a kernel if the options of the configuration ask for one; OptionError names one that is of no use."""
    used, name = OF_KERNEL[options.kernel] if options.kernel else (), options.kernel
    for key in OPTIONS[1:]:
        if getattr(options, key) is not None and key not in used:
            having = [kernel for kernel, keys in OF_KERNEL.items() if key in keys]
            raise OptionError(f"dataset.{key}: only with dataset.kernel={' or '.join(having)}, got kernel {name}")
    if name is None:
        return reader
    defaults = {"gamma": None, "coef0": 0.0, "degree": 3}
    given = {key: getattr(options, key) for key in used}
    return Kernelized(reader, {"kernel": name, **{k: defaults[k] if v is None else v for k, v in given.items()}})


def specimen(reader: R | Kernelized, write: Callable[[R, Sink], Record], sink: Sink) -> Record:
    """Blocks to compile for: `write` writes them for the reader without its kernel; this adds their points."""
    if not isinstance(reader, Kernelized):
        return write(reader, sink)
    into = WithPoints(sink)
    facts = write(cast("R", reader.reader), into)
    return {**facts, **reader.facts(into.shape, int(facts["classes"]))}
