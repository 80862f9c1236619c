"""A user's own classification data: arrays in .npz, comma-separated values, or SVMlight's format (sparse).

Options: ``file``, the training examples, and ``test_file``; without it the examples to test on are those in the same .npz
(``x_test``, ``y_test``), or a share ``test_fraction`` of each class, drawn with ``seed``. ``format`` is npz, csv or
svmlight; null: what the file's ending says, after which texts may have .gz. ``label_column`` (csv): a number or a name;
null: the last. ``bias``: value of a constant column; null: none. ``costs``: a file with the cost of each prediction for each
true class. ``kernel`` (dense rows): the options of `arrays.kernels`.
Formats: `arrays.npz_rows`, `arrays.csv_rows`, `arrays.svmlight`, `arrays.costs`.

Labels are whole numbers or names; classes are numbered in sorted order. In a text each spelling is a class of its own: 1 is
not 01. Sparse files stay sparse. Columns that only a sparse test file has are left out:
their weights would be 0. Columns of CSV files with a header are matched by name, and other columns are an error.

Two classes make the binary SVM of LIBLINEAR with lambda = 2 / (n C): see `stages.problems.multiclass`.

New input for `encoder`: an array (n, D), a scipy.sparse matrix, or a table of pandas, without the bias column. Columns of a
table are matched by name if those of the training data have names, else by place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets import (
    NEW,
    DataError,
    MapBlocks,
    NewInput,
    OptionError,
    Predicted,
    Raw,
    Reader,
    Report,
    Shown,
    Sink,
)
from gapwise.stages.datasets.arrays import new_rows
from gapwise.stages.datasets.arrays.costs import read_costs
from gapwise.stages.datasets.arrays.csv_rows import read_csv, read_more
from gapwise.stages.datasets.arrays.kernels import KernelOptions
from gapwise.stages.datasets.arrays.npz_rows import has_test, is_sparse, read_npz, stored_type
from gapwise.stages.datasets.arrays.rows import Columns, Csr, Label, Rows, classes_of, numbered, refuse_endless
from gapwise.stages.datasets.arrays.svmlight import read_svmlight
from gapwise.stages.datasets.common.files import existing
from gapwise.stages.datasets.common.options import Natural, Share, Values, one_of

ENDINGS = {".npz": "npz", ".csv": "csv", ".svmlight": "svmlight", ".svm": "svmlight", ".libsvm": "svmlight"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
MOST_CLASSES = 2**15 - 1


@dataclass(frozen=True)
class MulticlassArrays(Reader):
    """Examples with labels."""

    file: Annotated[Path, Values("a file of examples: .npz, .csv or .svmlight")]
    kernel: KernelOptions
    test_file: Path | None = None
    test_fraction: Share = 0.25
    seed: Natural = 0
    format: Annotated[str, one_of(*FORMATS)] | None = None
    label_column: Annotated[int, Values("a number")] | Annotated[str, Values("a name of the header")] | None = None
    bias: Annotated[float, Values("a number other than 0", lambda value: value != 0)] | None = None
    costs: Path | None = None
    structure = "multiclass"
    where = ("file", "test_file", "costs")

    def __post_init__(self) -> None:
        for name in self.where:
            if (file := getattr(self, name)) is not None:
                existing(file, f"dataset.{name}")
        if self.costs is not None and self.costs.suffix not in (".npy", ".csv"):
            raise OptionError(f"dataset.costs: expected a file that ends in .npy or .csv, got {self.costs}")
        if self.sparse and self.kernel.kernel is not None:
            raise OptionError("dataset.kernel: needs dense rows; these are sparse, so leave it null")

    @property
    def form(self) -> str:
        """The format of the files: the option, or what their ending says."""
        suffix = self.file.with_suffix("").suffix if self.file.suffix == ".gz" else self.file.suffix
        form = self.format or ENDINGS.get(suffix)
        if form is None:
            raise OptionError(
                f"dataset.format: must be given for {self.file.name}, as in dataset.format=svmlight; known endings are "
                f"{', '.join(ENDINGS)}, also with .gz"
            )
        return form

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse."""
        return self.form == "svmlight" or (self.form == "npz" and is_sparse(self.file))

    def files(self) -> dict[str, Path]:
        files = {"train": self.file, "test": self.test_file, "costs": self.costs}
        return {name: file for name, file in files.items() if file is not None}

    def source(self) -> Record:
        return {"format": self.form}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write both splits; DataError names file and line."""
        train, test, first = self._read()
        names = classes_of(train.labels)
        if not 2 <= len(names) <= MOST_CLASSES:
            raise DataError(f"{train.file}: has {len(names)} classes of labels; expected 2 to {MOST_CLASSES}")
        dropped, kernel = 0, dict[str, Any]()
        report(0, 2, "splits")
        for done, (split, rows) in enumerate((("train", train), ("test", test)), 1):
            labels = numbered(rows, names, str(train.file))
            x = rows.x
            if isinstance(x, Csr):
                dropped += int((x.ids >= train.width).sum())
                x = x.cut(train.width)
            written = write(sink, split, x, self.bias)
            if split == "train" and not isinstance(written, Csr):
                kernel = self.kernel.write(sink, written, len(names))
            sink.put(split, "labels", labels.astype(np.uint8 if len(names) <= 256 else np.int16))
            report(done, 2, "splits")
        if self.costs is not None:
            sink.put("", "cost", read_costs(self.costs, names))
        width = train.width + (self.bias is not None)
        dtype = (train.x.values if isinstance(train.x, Csr) else train.x).dtype
        return {
            "classes": len(names),
            "class_names": names,
            "width": width,
            "d": len(names) * width,
            "n_train": len(train.labels),
            "n_test": len(test.labels),
            "values_in_test_columns_only": dropped,
            "arrays": {
                "width": train.width,
                "bias": self.bias,
                "dtype": dtype.name,
                "sparse": self.sparse,
                "columns": train.columns.names,
            },
            "label_column": train.columns.label,
            "first_index": first,
            **kernel,
        }

    def specimen(self, sink: Sink) -> Record:
        dtype = stored_type(self.file) if self.form == "npz" else np.dtype(np.float64)
        eye = np.eye(2, dtype=dtype)
        write(
            sink, "train", Csr(np.arange(3), np.arange(2, dtype=np.int32), np.ones(2, dtype), 2) if self.sparse else eye
        )
        sink.put("train", "labels", np.array([0, 1], np.uint8))
        return {"classes": 2, "width": 2} | self.kernel.write(sink, eye, 2)

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> ArraysEncoder:
        columns = Columns(meta["arrays"].get("columns"), meta.get("label_column"), meta["arrays"]["width"])
        return ArraysEncoder(**{**meta["arrays"], "columns": columns})

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        return new_rows.read_new(inputs, meta)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
        return new_rows.stored_input(arrays, meta)

    @classmethod
    def truth(cls, new: NewInput, meta: Facts) -> list[str]:
        return new_rows.truth(new, meta)

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        return new_rows.show(new, predicted)

    def _read(self) -> tuple[Rows, Rows, int | None]:
        """Training and test examples, with as many columns unless they are sparse; index of the first SVMlight column."""
        first = None
        if self.form == "svmlight":
            train, first = read_svmlight(self.file)
            if train.width == 0:
                raise DataError(f"{self.file}: no example has a feature; expected lines like '+1 3:0.5 17:1'")
            test = read_svmlight(self.test_file, first)[0] if self.test_file else None
        elif self.form == "csv":
            train = read_csv(self.file, self.label_column)
            test = read_more(self.test_file, train.columns) if self.test_file else None
        else:
            train = read_npz(self.file, "train")
            given = (
                (self.test_file, "train") if self.test_file else (self.file, "test") if has_test(self.file) else None
            )
            test = read_npz(*given) if given else None
        if test is None:
            return *self._split(train), first
        if isinstance(train.x, Csr) != isinstance(test.x, Csr):
            raise DataError(f"{test.file}: one of training and test features is sparse; expected both or none")
        if test.width != train.width and (not isinstance(test.x, Csr) or self.form == "npz"):
            raise DataError(f"{test.file}: {test.width} features, but {train.width} in {train.file}")
        return train, test, first

    def _split(self, rows: Rows) -> tuple[Rows, Rows]:
        """A share of each class, drawn at random, for test; every class keeps an example for training."""
        of_class: dict[Label, list[int]] = {}
        for k, label in enumerate(rows.labels):
            of_class.setdefault(label, []).append(k)
        rng, chosen = np.random.default_rng(self.seed), np.zeros(len(rows.labels), bool)
        for members in of_class.values():
            count = min(round(self.test_fraction * len(members)), len(members) - 1)
            chosen[rng.permutation(members)[:count]] = True
        if not chosen.any():
            raise DataError(
                f"{rows.file}: {len(rows.labels)} examples of {len(of_class)} classes leave none to test on with "
                f"dataset.test_fraction={self.test_fraction:g}; give more, a larger share, or dataset.test_file"
            )
        return rows.taken(np.flatnonzero(~chosen)), rows.taken(np.flatnonzero(chosen))


def write(sink: Sink, split: str, x: np.ndarray | Csr, bias: float | None = None) -> np.ndarray | Csr:
    """Write the features of one split, with the constant column if there is one; returns them."""
    if isinstance(x, Csr):
        x = x if bias is None else x.with_constant(bias)
        for name in ("row_ptr", "ids", "values"):
            sink.put(split, name, getattr(x, name))
        return x
    constant = np.full((len(x), 0 if bias is None else 1), bias or 0.0, x.dtype)
    dense = np.concatenate([x, constant], axis=1)
    sink.put(split, "x", dense)
    return dense


@dataclass(frozen=True)
class ArraysEncoder:
    """Blocks of new examples."""

    width: int
    """Columns without the bias."""
    bias: float | None
    dtype: str
    sparse: bool
    columns: Columns

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """An array (n, D), a table or a scipy.sparse matrix, without the bias column."""
        from scipy import sparse

        found = getattr(raw, "columns", None)
        if found is not None and self.columns.names is not None:
            order, _ = self.columns.places([*map(str, found)], "input")
            raw = raw[[found[column] for column in order]]
        given: Any = raw if sparse.issparse(raw) else np.asarray(raw)
        if given.ndim != 2 or given.shape[0] == 0 or given.shape[1] != self.width or given.dtype.kind not in "biuf":
            raise DataError(
                f"input: is {given.dtype}{given.shape}; expected numbers, (examples, {self.width}), one column for each "
                "training feature, without the bias"
            )
        n = given.shape[0]
        x: np.ndarray | Csr
        if self.sparse:
            rows = sparse.csr_array(given)
            rows.sum_duplicates()
            rows.eliminate_zeros()
            values = rows.data.astype(self.dtype)
            x = Csr(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), values, self.width)
        else:
            x = np.asarray(given.toarray() if sparse.issparse(raw) else given).astype(self.dtype)
        refuse_endless(Rows(Path("input"), "row", np.arange(n), [0] * n, x))
        write(sink, NEW, x, self.bias)
        sink.put(NEW, "labels", np.zeros(n, np.uint8))
