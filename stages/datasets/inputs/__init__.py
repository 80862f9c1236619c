"""New input from files, and predictions in the form of the input they are for.

A reader's module that takes new input, or shows predictions in a form of its own, offers

* ``read_new(inputs, meta)``: a `NewInput` from paths (or other words of a command line, as it documents), in the form of the
  raw data. DataError names the file and says what was expected;
* ``stored_input(arrays, meta)``: the `NewInput` of a test split, as far as the feature store keeps it, or None; otherwise
  its true labels;
* ``show(new, predicted)``: what was predicted for it as `Shown`, in a form for people and for tools of the field; otherwise
  a CSV of blocks, their true labels if they are known, and the predicted ones.

So `show` makes the same of a test split, after a run, and of the same data given as new input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gapwise.records import Facts
from gapwise.stages.datasets import DataError, Raw, module_of
from gapwise.stages.datasets.inputs.arrays import csv_text


@dataclass(frozen=True)
class NewInput:
    """New input: the values for an encoder, and what `show` needs to know about their source."""

    raw: Raw
    source: Any = None
    several: bool = False
    """Whether predictions for it are several files, and no text."""
    example: Any = None
    """One of the inputs as an encoder takes it in a list: a text, numbers, the contents of a picture's file."""


@dataclass(frozen=True)
class Predicted:
    """Labels of the blocks of one split.

    Attributes
    ----------
    labels : array
        Flat; block i has ``labels[label_ptr[i]:label_ptr[i + 1]]``.
    label_ptr : int64 array, shape (n + 1,)
    names : list of str
        Names of the labels; empty where they are only numbers.
    arrays : mapping
        Arrays of the split: of pictures ``superpixel_map`` and ``hw``, say.
    """

    labels: np.ndarray
    label_ptr: np.ndarray
    names: list[str] = field(default_factory=list)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self.label_ptr) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        """Labels of block i, from 0."""
        if not 0 <= i < len(self):
            raise IndexError(f"block {i}: there are {len(self)}")
        return self.labels[self.label_ptr[i] : self.label_ptr[i + 1]]

    def named(self, i: int) -> list[str] | list[int]:
        """Labels of block i by name, or as integers where labels have no names."""
        labels = self[i].tolist()
        return [self.names[label] for label in labels] if self.names else labels

    @property
    def has_masks(self) -> bool:
        """Whether blocks are pictures, whose pixels have labels."""
        return "superpixel_map" in self.arrays

    def mask(self, i: int) -> np.ndarray:
        """Labels of the pixels of picture i, (H, W)."""
        ptr = self.arrays["superpixel_map_ptr"]
        height, width = np.asarray(self.arrays["hw"])[int(np.asarray(self.arrays["hw_ptr"])[i])].tolist()
        regions = np.asarray(self.arrays["superpixel_map"][ptr[i] : ptr[i + 1]]).reshape(height, width)
        return np.asarray(self[i][regions])


@dataclass(frozen=True)
class Shown:
    """Predictions as files: one text, or several files by name, made one after the other."""

    text: str = ""
    suffix: str = ".csv"
    """Of a file with the text."""
    files: Iterable[tuple[str, bytes]] | None = None


def label_names(meta: Facts) -> list[str]:
    """Names of the labels of a data set, from the facts of its features; empty for labels without names."""
    return [str(name) for name in meta.get("label_names", meta.get("class_names", ()))]


def read_new(meta: Facts, inputs: Sequence[str]) -> NewInput:
    """New input for the data set with these facts; DataError for a bad file, or if its reader takes no files."""
    new: NewInput = _offered(meta, "read_new")(inputs, meta)
    return new


def stored_input(meta: Facts, arrays: Mapping[str, np.ndarray]) -> NewInput | None:
    """The input of a test split with these arrays, as far as they keep it; None if they do not."""
    if "dataset" not in meta:
        return None
    own = getattr(module_of(meta["dataset"]), "stored_input", None)
    new: NewInput | None = NewInput(None, np.asarray(arrays["labels"])) if own is None else own(arrays, meta)
    return new


def show(meta: Facts, new: NewInput, predicted: Predicted) -> Shown:
    """What was predicted for `new`, as the reader of this data set shows it."""
    shown: Shown = getattr(module_of(meta["dataset"]), "show", in_csv)(new, predicted)
    return shown


def in_csv(new: NewInput, predicted: Predicted) -> Shown:
    """CSV: the block's number from 0, its true labels if `new.source` has them, flat, and the predicted ones."""
    columns = {} if new.source is None else {"truth": replace(predicted, labels=np.asarray(new.source))}
    columns["predicted"] = predicted
    rows = ([i, *(" ".join(map(str, labels.named(i))) for labels in columns.values())] for i in range(len(predicted)))
    return Shown(csv_text(("block", *columns), rows))


def _offered(meta: Facts, name: str) -> Callable[..., Any]:
    function = getattr(module_of(meta["dataset"]), name, None)
    if function is None:
        raise DataError(
            f"dataset.name={meta['dataset']}: this reader takes no new input from files; its module must define {name}"
        )
    return function
