"""USPS digits: 16 x 16 grey images, 7,291 to train and 2,007 to test (S15 4).

Options: ``root``, a folder with the publisher's ``zip.train`` and ``zip.test`` (each also as ``.gz``: a digit and 256 grey
values in [-1, 1] a line) or ``usps.npz`` (the same in arrays, whole numbers being thousandths). No bias: d = 10 * 256 =
2,560. With a ``kernel``, its options are those of `arrays.kernels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import UNREADABLE, DataError, MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.arrays.kernels import OPTIONS, KernelOptions, with_kernel
from gapwise.stages.datasets.arrays.kernels import specimen as with_points
from gapwise.stages.datasets.offers.options import Values, options_of, taken_from

PIXELS, DIGITS = 16 * 16, 10
PICTURE = (16, 16)
"""The features are the pixels of a picture of this shape; reports show it."""
SPLITS = ("train", "test")
Images = tuple[np.ndarray, np.ndarray]
"""Grey values float32 (n, 256) in [-1, 1], digits uint8 (n,)."""
WHERE = ("root",)
LATER = OPTIONS


@dataclass(frozen=True)
class Options:
    """Options of the configuration."""

    root: Annotated[Path, Values("the folder that holds usps.npz, or zip.train and zip.test (or .gz)")]
    kernel: KernelOptions


@dataclass(frozen=True)
class Usps:
    """Reader of the digits."""

    paths: tuple[Path, ...]
    """usps.npz, or one file per split"""
    structure = "multiclass"

    def files(self) -> dict[str, Path]:
        return dict(zip(SPLITS, self.paths, strict=False))

    def source(self) -> Record:
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        counts = {}
        for k, split in enumerate(SPLITS):
            images, digits = read_npz(self.paths[0], split) if len(self.paths) == 1 else read_text(self.paths[k])
            sink.put(split, "x", images)
            sink.put(split, "labels", digits)
            counts[f"n_{split}"] = int(digits.size)
            report(k + 1, len(SPLITS), "splits")
        return {"classes": DIGITS, "d": DIGITS * PIXELS, **counts}


def specimen(options: Facts, sink: Sink) -> Record:
    """Blocks to compile for."""
    return with_points(with_kernel(Usps(()), taken_from(KernelOptions, options)), _specimen, sink)


def _specimen(reader: Usps, sink: Sink) -> Record:
    sink.put("train", "x", np.eye(3, PIXELS, dtype=np.float32))
    sink.put("train", "labels", np.array([0, 1, 1], np.uint8))
    return {"classes": DIGITS, "d": DIGITS * PIXELS}


def open(options: Facts) -> Reader:
    """The reader; DataError names what is missing, OptionError the option that is wrong."""
    given = options_of(Options, options)
    root, archive = given.root, given.root if given.root.suffix == ".npz" else given.root / "usps.npz"
    if archive.is_file():
        return with_kernel(Usps((archive,)), given.kernel)
    files = [next((p for p in (root / f"zip.{s}", root / f"zip.{s}.gz") if p.is_file()), None) for s in SPLITS]
    if None in files:
        raise DataError(f"dataset.root: {root} holds neither usps.npz nor both zip.train and zip.test (or .gz)")
    return with_kernel(Usps(tuple(file for file in files if file is not None)), given.kernel)


def read_npz(file: Path, split: str) -> Images:
    """One split of ``usps.npz``; DataError names the field and the row."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            values, digits = archive[f"X_{split}"], archive[f"y_{split}"]
    except UNREADABLE as error:
        raise DataError(f"{file}: expected arrays X_{split} and y_{split}: {error}") from error
    return _checked(file, f"row of {split}", 0, values, digits)


def read_text(file: Path) -> Images:
    """A file of the publisher; DataError names the line."""
    try:
        table = np.loadtxt(file, ndmin=2)
    except UNREADABLE as error:
        raise DataError(f"{file}: expected a digit and {PIXELS} numbers a line: {error}") from error
    return _checked(file, "line", 1, table[:, 1:], table[:, 0])


def _checked(file: Path, row: str, first: int, values: np.ndarray, digits: np.ndarray) -> Images:
    """The images; DataError for an invalid image, which it calls a `row` and counts from `first`."""
    if values.ndim != 2 or values.shape[1] != PIXELS or digits.shape != values.shape[:1] or not digits.size:
        got = f"{values.shape} and {digits.shape}"
        raise DataError(f"{file}: expected a digit and {PIXELS} grey values a {row}, got arrays of {got}")
    wrong = ~np.isin(digits, np.arange(DIGITS))
    if wrong.any():
        raise DataError(f"{file}: {row} {int(np.argmax(wrong)) + first} has a digit that is not one of 0..{DIGITS - 1}")
    return _grey(file, row, first, values).astype(np.float32), digits.astype(np.uint8)


def _grey(file: Path, row: str, first: int, values: np.ndarray) -> np.ndarray:
    """Grey values in [-1, 1]; whole numbers beyond are thousandths. DataError names the row."""
    if values.dtype.kind in "iub":
        least, most = int(values.min()), int(values.max())
        if least >= 0 and most <= 255:
            raise DataError(
                f"{file}: has whole numbers from {least} to {most}, as 8-bit pixels are; expected grey values in [-1, 1] "
                "(pixels / 127.5 - 1), or thousandths of them"
            )
        values = values / 1000.0 if max(-least, most) > 1 else values
    bad = ~(np.abs(values) <= 1.0).all(axis=1)
    if bad.any():
        raise DataError(f"{file}: {row} {int(np.argmax(bad)) + first} has a grey value outside [-1, 1]")
    return values
