"""A user's own classification data: arrays in .npz, comma-separated values, or SVMlight's format (sparse).

Options: ``file``, the training examples, and ``test_file``; without it the examples to test on are those in the same .npz
(``x_test``, ``y_test``), or a share ``test_fraction`` of each class, drawn with ``seed``. ``format`` is npz, csv or
svmlight; null: what the file's ending says, after which texts may have .gz. ``label_column`` (csv): a number or a name;
null: the last. ``bias``: value of a constant column; null: none. ``costs``: a file with the cost of each prediction for each
true class. ``kernel`` (dense rows): `arrays.rows.KernelOptions`.
Formats: `arrays.files`, `arrays.csv_rows`.

Labels are whole numbers or names; classes are numbered in sorted order. In a text each spelling is a class of its own: 1 is
not 01. Sparse files stay sparse. Columns that only a sparse test file has are left out:
their weights would be 0. Columns of CSV files with a header are matched by name, and other columns are an error.

Two classes make the binary SVM of LIBLINEAR with lambda = 2 / (n C): see `stages.problems.multiclass`.

New input for `encoder`: an array (n, D), a scipy.sparse matrix, or a table of pandas, without the bias column. Columns of a
table are matched by name if those of the training data have names, else by place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from gapwise.stages.datasets.arrays.csv_rows import read_costs, read_csv
from gapwise.stages.datasets.arrays.files import (
    ENDINGS,
    FEATURES,
    form_of,
    has_sparse,
    read_more,
    read_npz,
    read_svmlight,
)
from gapwise.stages.datasets.arrays.rows import (
    Columns,
    KernelOptions,
    Label,
    Matrix,
    Rows,
    classes_of,
    is_sparse,
    numbered,
    refuse_endless,
)
from gapwise.stages.datasets.common.files import arrays_of, csv_text, existing
from gapwise.stages.datasets.common.options import Natural, Share, Values, one_of

if TYPE_CHECKING:
    from scipy import sparse

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
        if self.costs is not None and self.costs.suffix != ".csv":
            raise OptionError(f"dataset.costs: expected a file that ends in .csv, got {self.costs}")
        if self.kernel.kernel is not None and (
            self.form == "svmlight" or (self.form == "npz" and has_sparse(self.file))
        ):
            raise OptionError("dataset.kernel: needs dense rows; these are sparse, so leave it null")

    @property
    def form(self) -> str:
        """The format of the files: the option, or what their ending says."""
        form = self.format or form_of(self.file)
        if form is None:
            raise OptionError(
                f"dataset.format: must be given for {self.file.name}, as in dataset.format=svmlight; known endings are "
                f"{', '.join(ENDINGS)}, also with .gz"
            )
        return form

    def files(self) -> dict[str, Path]:
        files = {"train": self.file, "test": self.test_file, "costs": self.costs}
        return {name: file for name, file in files.items() if file is not None}

    def source(self) -> Record:
        return {"format": self.form}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write both splits; DataError names file and line."""
        train, test = self._read()
        names = classes_of(train.labels)
        if not 2 <= len(names) <= MOST_CLASSES:
            raise DataError(f"{train.file}: has {len(names)} classes of labels; expected 2 to {MOST_CLASSES}")
        width, dropped, kernel = train.columns.width, 0, dict[str, Any]()
        report(0, 2, "splits")
        for done, (split, rows) in enumerate((("train", train), ("test", test)), 1):
            labels = numbered(rows, names, str(train.file))
            x = rows.x
            if is_sparse(x):
                dropped += int((x.indices >= width).sum())
                x = cut(x, width)
            written = write(sink, split, x, self.bias)
            if split == "train" and not is_sparse(written):
                kernel = self.kernel.write(sink, written, len(names))
            sink.put(split, "labels", labels.astype(np.uint8 if len(names) <= 256 else np.int16))
            report(done, 2, "splits")
        if self.costs is not None:
            sink.put("", "cost", read_costs(self.costs, names))
        learned = width + (self.bias is not None)
        return {
            "classes": len(names),
            "class_names": names,
            "width": learned,
            "d": len(names) * learned,
            "n_train": len(train.labels),
            "n_test": len(test.labels),
            "values_in_test_columns_only": dropped,
            "arrays": {
                "width": width,
                "bias": self.bias,
                "dtype": train.x.dtype.name,
                "sparse": is_sparse(train.x),
                "columns": train.columns.names,
            },
            "label_column": train.columns.label,
            "first_index": train.columns.first,
            **kernel,
        }

    def specimen(self, sink: Sink) -> Record:
        from scipy import sparse

        some = read_npz(self.file, "train").x[:0] if self.form == "npz" else np.empty((0, 0))
        eye = np.eye(2, dtype=some.dtype)
        rows = sparse.csr_array(eye) if self.form == "svmlight" or is_sparse(some) else eye
        write(sink, "train", rows)
        sink.put("train", "labels", np.array([0, 1], np.uint8))
        return {"classes": 2, "width": 2} | self.kernel.write(sink, eye, 2)

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> ArraysEncoder:
        given = {name: meta["arrays"][name] for name in ("bias", "dtype", "sparse")}
        return ArraysEncoder(columns=_columns(meta), **given)

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """Examples of files in any of the formats, other endings being comma-separated numbers.

        Columns go by name if they have names in training. Labels may be there as in training, and are shown beside
        predictions.
        """
        from scipy import sparse

        columns, parts = _columns(meta), []
        for file in map(Path, inputs):
            rows = read_more(existing(file, "input"), form_of(file) or "csv", columns, labelled=False)
            parts.append(replace(rows, x=cut(rows.x, columns.width) if is_sparse(rows.x) else rows.x))
        together = sparse.vstack if any(is_sparse(rows.x) for rows in parts) else np.concatenate
        return NewInput(together([rows.x for rows in parts]), parts if all(rows.labels for rows in parts) else None)

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput:
        """Features and labels of a test split, without the constant column."""
        from scipy import sparse

        names, columns = meta["class_names"], _columns(meta)
        labels = [names[k] for k in np.asarray(arrays["labels"]).tolist()]
        example: Any = None
        if "x" in arrays:
            x: Any = np.asarray(arrays["x"])[:, : columns.width]
            example = dict(zip(columns.names, x[0].tolist(), strict=True)) if columns.names else x[0].tolist()
        else:
            ptr, width = np.asarray(arrays["row_ptr"]), int(meta["width"])
            stored = sparse.csr_array((arrays["values"], arrays["ids"], ptr), shape=(ptr.size - 1, width))
            x = cut(stored, columns.width)
        return NewInput(x, [Rows(Path("test split"), "row", np.arange(len(labels)), labels, x)], example=example)

    @classmethod
    def truth(cls, new: NewInput, meta: Facts) -> list[str]:
        """The labels of new examples by name; DataError unless all have one that the training data have."""
        if new.source is None:
            raise DataError(
                "input: has no labels to compare predictions with; expected examples with labels, as in training"
            )
        for rows in new.source:
            numbered(rows, meta["class_names"], "the training data")
        return [str(label) for rows in new.source for label in rows.labels]

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """CSV: the example's number from 0, its label if the input has it, the predicted label."""
        columns: dict[str, Sequence[object]] = {"example": range(len(predicted))}
        if new.source is not None:
            columns["label"] = [label for rows in new.source for label in rows.labels]
        columns["predicted"] = [predicted.named(i)[0] for i in range(len(predicted))]
        return Shown(csv_text([*columns], zip(*columns.values(), strict=True)))

    def _read(self) -> tuple[Rows, Rows]:
        """Training and test examples, with as many columns unless they are sparse."""
        if self.form == "svmlight":
            train = read_svmlight(self.file)
        else:
            train = read_csv(self.file, self.label_column) if self.form == "csv" else read_npz(self.file, "train")
        if self.test_file is not None:
            test = read_more(self.test_file, self.form, train.columns)
        elif self.form == "npz" and arrays_of(self.file, FEATURES["test"]):
            test = read_npz(self.file, "test")
        else:
            return self._split(train)
        if is_sparse(train.x) != is_sparse(test.x):
            raise DataError(f"{test.file}: one of training and test features is sparse; expected both or none")
        return train, test

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


def cut(x: sparse.csr_array, width: int) -> sparse.csr_array:
    """The same rows with `width` columns: later columns are left out, and so are zeros."""
    from scipy import sparse

    kept = sparse.csr_array(x[:, :width])
    kept.eliminate_zeros()
    kept.resize(x.shape[0], width)
    return kept


def write(sink: Sink, split: str, x: Matrix, bias: float | None = None) -> Matrix:
    """Write the features of one split, with the constant column if there is one; returns them."""
    constant = np.full((x.shape[0], 0 if bias is None else 1), bias or 0.0, x.dtype)
    if is_sparse(x):
        from scipy import sparse

        rows = sparse.hstack([x, sparse.csr_array(constant)], format="csr")
        sink.put(split, "row_ptr", rows.indptr.astype(np.int64))
        sink.put(split, "ids", rows.indices.astype(np.int32))
        sink.put(split, "values", rows.data)
        return rows
    dense = np.concatenate([x, constant], axis=1)
    sink.put(split, "x", dense)
    return dense


def _columns(meta: Facts) -> Columns:
    """The columns of training, from the facts of its features."""
    arrays = meta["arrays"]
    return Columns(arrays.get("columns"), meta.get("label_column"), int(arrays["width"]), meta.get("first_index"))


@dataclass(frozen=True)
class ArraysEncoder:
    """Blocks of new examples."""

    columns: Columns
    """Without the bias."""
    bias: float | None
    dtype: str
    sparse: bool

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> None:
        """An array (n, D), a table or a scipy.sparse matrix, without the bias column."""
        from scipy import sparse

        found, width = getattr(raw, "columns", None), self.columns.width
        if found is not None and self.columns.names is not None:
            order, _ = self.columns.places([*map(str, found)], "input")
            raw = raw[[found[column] for column in order]]
        given: Any = raw if is_sparse(raw) else np.asarray(raw)
        if given.ndim != 2 or given.shape[0] == 0 or given.shape[1] != width or given.dtype.kind not in "biuf":
            raise DataError(
                f"input: is {given.dtype}{given.shape}; expected numbers, (examples, {width}), one column for each "
                "training feature, without the bias"
            )
        if self.sparse:
            given = sparse.csr_array(given)
            given.sum_duplicates()
            given.eliminate_zeros()
        x = (given.toarray() if is_sparse(given) and not self.sparse else given).astype(self.dtype)
        refuse_endless(Rows(Path("input"), "row", np.arange(x.shape[0]), [], x))
        write(sink, NEW, x, self.bias)
        sink.put(NEW, "labels", np.zeros(x.shape[0], np.uint8))
