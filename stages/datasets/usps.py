"""USPS digits: 16 x 16 grey images, 7,291 to train and 2,007 to test (S15 4).

Options: ``root``, a folder with the publisher's ``zip.train`` and ``zip.test`` (each also as ``.gz``: a digit and 256 grey
values in [-1, 1] a line) or ``usps.npz`` (the same in arrays, whole numbers being thousandths). No bias: d = 10 * 256 =
2,560. With a ``kernel``, its options are those of `arrays.kernels`.

New input for `encoder`: grey values in [-1, 1], (n, 256) or (n, 16, 16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import NEW, UNREADABLE, DataError, MapBlocks, Raw, Reader, Report, Sink
from gapwise.stages.datasets.arrays.kernels import OPTIONS, KernelOptions, with_kernel
from gapwise.stages.datasets.arrays.kernels import specimen as with_points
from gapwise.stages.datasets.inputs import NewInput, Predicted, Shown
from gapwise.stages.datasets.inputs.arrays import array_of, arrays_of, csv_text, table_of
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


class UspsEncoder:
    """Blocks of new images."""

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """Grey values in [-1, 1], (n, 256) or (n, 16, 16)."""
        images = np.asarray(raw)
        flat = images.reshape(len(images), -1) if images.ndim else images
        if flat.ndim != 2 or not flat.size or flat.shape[1] != PIXELS:
            raise DataError(f"input: expected {PIXELS} grey values per image, got an array of shape {images.shape}")
        flat = _grey("input", "image", 0, flat, 1.0)
        sink.put(NEW, "x", flat.astype(np.float32))
        sink.put(NEW, "labels", np.zeros(len(flat), dtype=np.uint8))


def encoder(meta: Facts, shared: Mapping[str, np.ndarray]) -> UspsEncoder:
    """The encoder of a feature store of this reader."""
    return UspsEncoder()


def read_new(inputs: Sequence[str], meta: Facts) -> NewInput:
    """Images of files: .npy or .npz (array X, X_test or the only one, whole numbers are thousandths), else a text of rows of
    256 grey values, after the digit or without it, as in the publisher's files."""
    parts = [_images(Path(name)) for name in inputs]
    digits = None if any(known is None for _, known in parts) else np.concatenate([known for _, known in parts])
    return NewInput(np.concatenate([images for images, _ in parts]), digits)


def _images(file: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Grey values (n, 256) of a file, and its digits if it has them."""
    digits = None
    if file.suffix == ".npz":
        arrays = arrays_of(file, ("X", "X_test"))
        if len(arrays) != 1:
            raise DataError(f"{file}: holds {', '.join(arrays) or 'neither'}; expected one of the arrays X and X_test")
        (images,) = arrays.values()
    elif file.suffix == ".npy":
        images = array_of(file)
    else:
        images = table_of(file)
        if images.shape[1] == PIXELS + 1:
            images, digits = images[:, 1:], images[:, 0].astype(int)
    images = images.reshape(len(images), -1) if images.ndim else images
    if images.ndim != 2 or not images.size or images.shape[1] != PIXELS:
        raise DataError(f"{file}: expected {PIXELS} grey values an image, got an array of shape {images.shape}")
    return _grey(file, "image", 0, images), digits


def stored_input(arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
    """Images and digits of a test split."""
    x = np.asarray(arrays["x"])
    return NewInput(x, np.asarray(arrays["labels"]).astype(int), example=x[0].tolist())


def show(new: NewInput, predicted: Predicted) -> Shown:
    """CSV: the image's number from 0, its digit if the input has it, the predicted digit."""
    digits = predicted.labels.tolist()
    if new.source is None:
        return Shown(csv_text(("image", "predicted"), enumerate(digits)))
    rows = zip(range(len(digits)), new.source.tolist(), digits, strict=True)
    return Shown(csv_text(("image", "digit", "predicted"), rows))


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


def _grey(file: Path | str, row: str, first: int, values: np.ndarray, units: float = 1000.0) -> np.ndarray:
    """Grey values in [-1, 1]; whole numbers beyond are divided by `units`. DataError names the row."""
    if values.dtype.kind in "iub":
        least, most = int(values.min()), int(values.max())
        if least >= 0 and most <= 255:
            raise DataError(
                f"{file}: has whole numbers from {least} to {most}, as 8-bit pixels are; expected grey values in [-1, 1] "
                "(pixels / 127.5 - 1), or thousandths of them"
            )
        values = values / units if max(-least, most) > 1 else values
    bad = ~(np.abs(values) <= 1.0).all(axis=1)
    if bad.any():
        raise DataError(f"{file}: {row} {int(np.argmax(bad)) + first} has a grey value outside [-1, 1]")
    return values
