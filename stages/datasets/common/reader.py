"""What a data set is: `Reader`; `Encoder`, the feature map for new inputs; and the forms of inputs and predictions."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.datasets.common.files import DataError, csv_text
from gapwise.stages.datasets.common.options import options_of

log = logging.getLogger("gapwise")
Report = Callable[[int, int, str], None]
"""report(done, total, what): progress of a long step."""

Item = TypeVar("Item")
Made = TypeVar("Made")

Raw: TypeAlias = Any
"""New inputs as the `encode` of a reader documents them, which checks them."""

NEW = "new"
"""Name of the split that encoders write."""


class MapBlocks(Protocol):
    """map_blocks(fn, items): fn(item) for every item, in order, wherever the computation runs."""

    def __call__(self, fn: Callable[[Item], Made], items: Iterable[Item], /) -> Iterator[Made]: ...


class Sink(Protocol):
    """Receives a reader's arrays; `storage.features.FeatureWriter` and `Blocks` are sinks.

    Examples
    --------
    Two sentences, of two tokens and of one, go in block by block. The sink counts the rows.

    >>> from gapwise.stages.datasets import Blocks
    >>> sink = Blocks("chain")
    >>> sink.append("train", tokens=np.eye(2), labels=np.array([0, 1], np.uint8))
    >>> sink.append("train", tokens=np.ones((1, 2)), labels=np.array([1], np.uint8))
    >>> sink.put("", "vocabulary", np.array(["the", "house"]))
    >>> arrays = sink.arrays("train")
    >>> arrays["labels"].tolist(), arrays["labels_ptr"].tolist(), arrays["vocabulary"].tolist()
    ([0, 1, 1], [0, 2, 3], ['the', 'house'])
    """

    def append(self, split: str, **arrays: np.ndarray) -> None:
        """Add one block to a split.

        Parameters
        ----------
        split : str
            "train", "validation", "test" or `NEW`.
        **arrays : arrays
            They are concatenated on axis 0, and offsets are kept as ``<name>_ptr``.
        """

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        """Write a whole array.

        Parameters
        ----------
        split : str
            As in `append`; "" means shared by all splits.
        name : str
            The array's name in the feature store.
        array : array
            Of any shape; its dtype is kept.
        """


class Known(NamedTuple):
    """How many attributes of new input have weights, and how many there are; each counts as often as it occurs."""

    known: int
    total: int

    def __str__(self) -> str:
        return f"{self.known} of {self.total} attributes known"


class NothingKnown(UserWarning):
    """New input of whose attributes none occurs in the training data, so that only biases and transitions count."""


def tell_known(known: Known | None) -> None:
    """Warn if the training data have none of the attributes of new input; otherwise tell the log how many they have."""
    if known is None or known.known == known.total:
        return
    if not known.known:
        message = "none of the attributes of this input occurs in the training data; give them the same names"
        warnings.warn(f"{known}: {message}", NothingKnown, stacklevel=3)
    log.info("%s; the others do not occur in the training data and count for nothing", known)


class Encoder(Protocol):
    """The feature map of a data set, restored from a feature store.

    Examples
    --------
    Rows of numbers, divided by the scale that featurize has put into the shared arrays. The reader would have
    ``encoder(meta, shared)``, which returns ``Scaled(shared["scale"])``.

    >>> from gapwise.stages.datasets import Blocks
    >>> class Scaled:
    ...     def __init__(self, scale):
    ...         self.scale = scale
    ...
    ...     def encode(self, raw, sink, map_blocks):
    ...         x = np.array(raw) / self.scale
    ...         sink.put(NEW, "x", x)
    ...         sink.put(NEW, "labels", np.zeros(len(x), np.uint8))  # not known
    >>> sink = Blocks("multiclass", decoding=True)
    >>> Scaled(np.array([2.0, 10.0])).encode([[1.0, 5.0], [4.0, 0.0]], sink, map)
    >>> sink.arrays(NEW)["x"].tolist()
    [[0.5, 0.5], [2.0, 0.0]]
    """

    def encode(self, raw: Raw, sink: Sink, map_blocks: MapBlocks) -> Known | None:
        """Write new inputs into the split ``NEW`` of `sink`, with the arrays of a test split.

        Parameters
        ----------
        raw : object
            New inputs, as the reader documents them.
        sink : Sink
            Takes the arrays.
        map_blocks : MapBlocks
            Maps a function over blocks, wherever the computation runs.

        Returns
        -------
        Known or None
            How many attributes of the input the training data have; None where an input cannot have others.

        Raises
        ------
        DataError
            For bad input; names the input and what was expected.
        """


@dataclass(frozen=True)
class NewInput:
    """New input: the values for an encoder, and what `Reader.show` needs to know about their source."""

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


class Reader:
    """One data set. A dataclass whose fields are its options (`common.options`); an instance has them resolved and checked.

    A part of your own is a module with one such class. Only `files` and `featurize` must be defined: the other methods say
    how new input is encoded, read and shown, where that is of use.

    Attributes
    ----------
    structure : str
        The name of the structure of its blocks, a module of `stages.problems`.
    version : int
        Of the features: raise it with every edit, of the reader or of code that it uses, that changes what it writes. Then
        features are made again. (Of a part of your own the key has the code.)
    where : tuple of str
        Options that only say where files are, or that `source` has: the key of a run has the files' contents, or what
        `source` says, instead.
    needs : tuple of str
        Packages that are imported only while data are read, so that a missing one is known before anything is written.
    validations : mapping
        The values of `dataset.validation` that ask for validation blocks of the reader's own, each with the options that it
        reads only then. The field `validation` is set in that case alone, and `featurize` writes the split "validation".
        Training blocks can be held out whatever the reader (`stages.problems.held_out`).
    joined : bool
        Whether validation blocks of the reader's own can join the training blocks for a refit.
    code : str, optional
        The option, and the fact of features, that names a class of the user's own.
    picture : (height, width), optional
        Of the picture whose pixels are the first features.

    Examples
    --------
    A reader of six rows with two classes, and of two to test on.

    >>> @dataclass(frozen=True)
    ... class Rows(Reader):
    ...     n: int = 6
    ...     structure = "multiclass"
    ...
    ...     def files(self):
    ...         return {}  # nothing is read
    ...
    ...     def featurize(self, sink, map_blocks, report):
    ...         for split, n in (("train", self.n), ("test", 2)):
    ...             labels = np.arange(n) % 2
    ...             sink.put(split, "x", np.eye(2)[labels])
    ...             sink.put(split, "labels", labels.astype(np.uint8))
    ...         return {"classes": 2}
    >>> found = {}
    >>> class InMemory:
    ...     def put(self, split, name, array):
    ...         found[split, name] = array
    >>> Rows.open({"n": 4}).featurize(InMemory(), map, print)
    {'classes': 2}
    >>> found["train", "labels"].tolist()
    [0, 1, 0, 1]
    """

    structure: ClassVar[Any] = ""
    version: ClassVar[int] = 1
    where: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    validations: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    joined: ClassVar[bool] = True
    code: ClassVar[str | None] = None
    picture: ClassVar[tuple[int, int] | None] = None

    @classmethod
    def open(cls, options: Facts) -> Self:
        """The reader for options of the configuration; OptionError or DataError names the one that cannot be used."""
        return options_of(cls, options)

    def files(self) -> Mapping[str, Path]:
        """Every file that `featurize` reads; the key has their contents.

        Returns
        -------
        mapping of str to Path
            The names do not depend on where the files are.
        """
        raise NotImplementedError

    def source(self) -> Record:
        """What the features depend on besides files, options and the reader's code.

        Returns
        -------
        dict
            JSON-able, cheap to make; part of the key.
        """
        return {}

    def featurize(self, sink: Sink, map_blocks: MapBlocks, report: Report) -> Record:
        """Write all arrays into `sink`.

        Training blocks are written in an order that depends on the data alone, because their number decides which of them
        are held out. Facts and shared arrays hold everything that `encoder` needs, including vocabularies and codebooks.

        Parameters
        ----------
        sink : Sink
            Takes the arrays.
        map_blocks : MapBlocks
            Maps a function over blocks, wherever the computation runs.
        report : callable
            report(done, total, what): tells the progress.

        Returns
        -------
        dict
            JSON-able facts: sizes, names of features, splits.

        Raises
        ------
        DataError
            If a file cannot be used; names the file, and the line or field.
        """
        raise NotImplementedError

    def specimen(self, sink: Sink) -> Record:
        """Write a few tiny training blocks with arrays of the types that `featurize` will write; return their facts.

        With them all that solves and verifies is compiled while `featurize` works. ValueError if the reader has none.
        """
        raise ValueError(f"{type(self).__name__} does not define specimen(sink)")

    @classmethod
    def encoder(cls, meta: Facts, shared: Mapping[str, np.ndarray]) -> Encoder:
        """The encoder restored from the facts and shared arrays of a feature store; DataError if the reader has none."""
        raise DataError(_lacks(cls, "cannot encode new inputs", "encoder(meta, shared)"))

    @classmethod
    def read_new(cls, inputs: Sequence[str], meta: Facts) -> NewInput:
        """New input from paths, or other words of a command line, in the form of the raw data; DataError names the file."""
        raise DataError(_lacks(cls, "takes no new input from files", "read_new(inputs, meta)"))

    @classmethod
    def truth(cls, new: NewInput, meta: Facts) -> list[str]:
        """Names of all labels of new input, for `stages.model.measures`; DataError for input without labels."""
        raise DataError(_lacks(cls, "does not read the labels of new input", "truth(new, meta)"))

    @classmethod
    def stored_input(cls, arrays: Mapping[str, np.ndarray], meta: Facts) -> NewInput | None:
        """The input of a test split as far as the feature store keeps it, here the true labels; None: nothing is shown."""
        return NewInput(None, np.asarray(arrays["labels"]))

    @classmethod
    def show(cls, new: NewInput, predicted: Predicted) -> Shown:
        """What was predicted for `new`, in a form for people and for tools of the field.

        `show` makes the same of a test split, after a run, and of the same data given as new input. Here: a CSV of the
        block's number from 0, its true labels if `new.source` has them, flat, and the predicted ones.
        """
        columns = {} if new.source is None else {"truth": replace(predicted, labels=np.asarray(new.source))}
        columns["predicted"] = predicted
        rows = ([i, *(" ".join(map(str, each.named(i))) for each in columns.values())] for i in range(len(predicted)))
        return Shown(csv_text(("block", *columns), rows))


def _lacks(reader: type[Reader], does: str, method: str) -> str:
    name = reader.__module__.rpartition(".")[2]
    return f"dataset.name={name}: this reader {does}; its class must define {method}"


def label_names(meta: Facts) -> list[str]:
    """Names of the labels of a data set, from the facts of its features; empty for labels without names."""
    return [str(name) for name in meta.get("label_names", meta.get("class_names", ()))]
