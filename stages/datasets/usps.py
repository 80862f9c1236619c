"""USPS digits: 16 x 16 grey images, 7,291 to train and 2,007 to test (S15 4).

Options: ``root``, a folder with the publisher's ``zip.train`` and ``zip.test`` (each also as ``.gz``: a digit and 256 grey
values in [-1, 1] a line) or ``usps.npz`` (the same in arrays, whole numbers being thousandths). No bias: d = 10 * 256 =
2,560. With a ``kernel``, its options are `arrays.rows.KernelOptions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import UNREADABLE, DataError, MapBlocks, Reader, Report, Sink
from gapwise.stages.datasets.arrays.rows import KernelOptions
from gapwise.stages.datasets.common.files import named_arrays
from gapwise.stages.datasets.common.options import Values

PIXELS, DIGITS = 16 * 16, 10
SPLITS = ("train", "test")
Images = tuple[np.ndarray, np.ndarray]
"""Grey values float32 (n, 256) in [-1, 1], digits uint8 (n,)."""


@dataclass(frozen=True)
class Usps(Reader):
    """The digits."""

    root: Annotated[Path, Values("the folder that holds usps.npz, or zip.train and zip.test (or .gz)")]
    kernel: KernelOptions
    structure = "multiclass"
    where = ("root",)
    picture = (16, 16)

    def __post_init__(self) -> None:
        self.files()

    def files(self) -> dict[str, Path]:
        """One file for both splits, or one each; DataError if they are not there."""
        archive = self.root if self.root.suffix == ".npz" else self.root / "usps.npz"
        if archive.is_file():
            return {"train": archive}
        names = {split: (self.root / f"zip.{split}", self.root / f"zip.{split}.gz") for split in SPLITS}
        found = {split: file for split, files in names.items() for file in files[::-1] if file.is_file()}
        if len(found) < len(SPLITS):
            raise DataError(
                f"dataset.root: {self.root} holds neither usps.npz nor both zip.train and zip.test (or .gz)"
            )
        return found

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        files = self.files()
        facts: Record = {"classes": DIGITS, "d": DIGITS * PIXELS}
        for k, split in enumerate(SPLITS):
            images, digits = read_text(files[split]) if len(files) > 1 else read_npz(files["train"], split)
            sink.put(split, "x", images)
            sink.put(split, "labels", digits)
            facts |= {f"n_{split}": int(digits.size)} | (self.kernel.write(sink, images, DIGITS) if not k else {})
            report(k + 1, len(SPLITS), "splits")
        return facts

    def specimen(self, sink: Sink) -> Record:
        x = np.eye(3, PIXELS, dtype=np.float32)
        sink.put("train", "x", x)
        sink.put("train", "labels", np.array([0, 1, 1], np.uint8))
        return {"classes": DIGITS, "d": DIGITS * PIXELS} | self.kernel.write(sink, x, DIGITS)


def read_npz(file: Path, split: str) -> Images:
    """One split of ``usps.npz``; DataError names the field and the row."""
    values, digits = named_arrays(file, (f"X_{split}", f"y_{split}")).values()
    least, most = (int(values.min(initial=0)), int(values.max(initial=0))) if values.dtype.kind in "iub" else (-1, 1)
    if least >= 0 and most <= 255:
        raise DataError(
            f"{file}: has whole numbers from {least} to {most}, as 8-bit pixels are; expected grey values in [-1, 1] "
            "(pixels / 127.5 - 1), or thousandths of them"
        )
    return _checked(file, f"row of {split}", 0, values / 1000.0 if max(-least, most) > 1 else values, digits)


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
    for wrong, fault in (
        (~np.isin(digits, np.arange(DIGITS)), f"a digit that is not one of 0..{DIGITS - 1}"),
        (~(np.abs(values) <= 1.0).all(axis=1), "a grey value outside [-1, 1]"),
    ):
        if wrong.any():
            raise DataError(f"{file}: {row} {int(np.argmax(wrong)) + first} has {fault}")
    return values.astype(np.float32), digits.astype(np.uint8)
