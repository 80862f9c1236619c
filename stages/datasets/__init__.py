"""Readers of raw data: one module per data set, all behind `Reader`. A reader depends on neither solver nor storage.

A reader's module offers ``open(options)``, the `Reader` for those options of the configuration (`offers.options` checks them
by a dataclass that declares their types and bounds), and, for new inputs,
``encoder(meta, shared)``, the `Encoder` restored from a feature store. `FeatureMap` finds and calls it. What `inputs`
lists reads new input from files and shows predictions, and ``truth(new, meta)`` is the list of the names of all labels of a
`NewInput`, for `stages.model.measures`. A module may name in
``WHERE`` the options that only say where files are, or that `source` has: the key of a run has the files' contents, or what
`source` says, instead; and in ``LATER``
options that it has not always had, which are no part of the key while they are null, so that older runs keep theirs.
``NEEDS`` names the packages that it imports only while it reads, so that one that is missing is known before anything is
written. With ``specimen(options, sink)``, which writes a few tiny training blocks with arrays of the types that `featurize`
will write and returns the facts that their structure needs, all that solves and verifies them is compiled while `featurize`
works. `offers.Offered` has all of this as one record.

Training blocks can be held out for validation whatever the reader (`stages.problems.held_out`). A reader that has validation
blocks of its own names in ``VALIDATION`` the values of `dataset.validation` that ask for them, each with the options that it
reads only then; `open` is given the option `validation` in that case alone, and `featurize` writes the split "validation".
``JOINED = False`` says that those blocks cannot join the training blocks, so no run trains on both.
"""

from __future__ import annotations

import functools
import gzip
import logging
import os
import pkgutil
import tarfile
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from gapwise.parts import digest_of, files_beside, with_parts
from gapwise.records import Facts, Record
from gapwise.stages import problems
from gapwise.stages.datasets.offers import Offered, offered_by
from gapwise.stages.problems import capabilities, structure
from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.losses import with_unit
from gapwise.stages.problems.user_code import definitions, given_names, imported_names

__path__ = with_parts(__path__, "datasets")

log = logging.getLogger("gapwise")
Report = Callable[[int, int, str], None]
"""report(done, total, what): progress of a long step."""


Item = TypeVar("Item")
Made = TypeVar("Made")

Raw: TypeAlias = Any
"""New inputs as the `encode` of a reader documents them, which checks them."""


class MapBlocks(Protocol):
    """map_blocks(fn, items): fn(item) for every item, in order, wherever the computation runs."""

    def __call__(self, fn: Callable[[Item], Made], items: Iterable[Item], /) -> Iterator[Made]: ...


class Sink(Protocol):
    """Receives a reader's arrays; `storage.features.FeatureWriter` and `Blocks` are sinks.

    Examples
    --------
    Two sentences, of two tokens and of one, go in block by block. The sink counts the rows.

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


class Reader(Protocol):
    """One data set with its options resolved and checked.

    Examples
    --------
    A reader of six rows with two classes. As a part of your own, its module has ``open(options)``, which returns it.

    >>> class Rows:
    ...     structure = "multiclass"
    ...
    ...     def files(self):
    ...         return {}  # nothing is read
    ...
    ...     def source(self):
    ...         return {}
    ...
    ...     def featurize(self, sink, map_blocks, report):
    ...         for split, n in (("train", 6), ("test", 2)):
    ...             labels = np.arange(n) % 2
    ...             sink.put(split, "x", np.eye(2)[labels])
    ...             sink.put(split, "labels", labels.astype(np.uint8))
    ...         return {"classes": 2}
    >>> found = {}
    >>> class InMemory:
    ...     def put(self, split, name, array):
    ...         found[split, name] = array
    >>> Rows().featurize(InMemory(), map, print)
    {'classes': 2}
    >>> found["test", "labels"].tolist()
    [0, 1]
    """

    @property
    def structure(self) -> str:
        """The name of the structure of its blocks, a module of `stages.problems`."""

    def files(self) -> Mapping[str, Path]:
        """Every file that `featurize` reads; the key has their contents.

        Returns
        -------
        mapping of str to Path
            The names do not depend on where the files are.
        """

    def source(self) -> Record:
        """What the features depend on besides files, options and the reader's code.

        Returns
        -------
        dict
            JSON-able, cheap to make; part of the key.
        """

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
    Rows of numbers, divided by the scale that featurize has put into the shared arrays. The reader's module would have
    ``encoder(meta, shared)``, which returns ``Scaled(shared["scale"])``.

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
            New inputs, as the reader's module documents them.
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


class DataError(ValueError):
    """Raw data that cannot be used: says which file, which field or line, what was expected."""


class OptionError(ValueError):
    """An option of a data set that is wrong whatever the data: names the key and says what was expected."""


UNREADABLE = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile, tarfile.TarError)
"""What Python's and numpy's readers raise for damaged files, which seldom names the file."""

NEW = "new"
"""Name of the split that encoders write."""


EXTRAS = {"h5py": "[hdf5]"}
"""Packages that installing Gapwise alone does not bring."""


def open_dataset(name: str, options: Facts) -> Reader:
    """The reader called `name`; ValueError lists the known ones."""
    module = module_of(name)
    part = offered_by(module)
    for package in part.needs:
        if find_spec(package) is None:
            raise OptionError(
                f"dataset.name={name}: needs the Python package {package}, which is not installed; "
                f'pip install "gapwise{EXTRAS.get(package, "")}" brings it'
            )
    if "root" in options and options["root"] is None:
        options = {**options, "root": _data_folder(name)}
    options = {key: at_home(value) if key in part.where else value for key, value in options.items()}
    reader: Reader = module.open(_own(part, options))
    return reader


def at_home(value: object) -> object:
    """A path that begins with ~, or a list of paths, on this machine; any other value as it is."""
    if isinstance(value, list | tuple):
        return [*map(at_home, value)]
    return os.path.expanduser(value) if isinstance(value, str | Path) else value


def offered(name: str) -> Offered:
    """What reader `name` offers besides ``open``; ValueError lists the known readers."""
    return offered_by(module_of(name))


def _own(part: Offered, options: Facts) -> Record:
    """The options that the reader handles: all but a `validation` that the reader does not list as its own."""
    known = [*(part.validation or {})]
    return {key: value for key, value in options.items() if key != "validation" or value in known}


def own_validation(name: str) -> dict[str, tuple[str, ...]]:
    """The values of `dataset.validation` that reader `name` itself understands, each with the options it reads only then."""
    return dict(offered(name).validation or {})


def science(options: Facts) -> Record:
    """The options of a data set that determine its features: all but those that say where files are.

    Of the options that a reader names in ``LATER`` those that are None are left out, too.
    """
    part = offered(str(options["name"]))
    kept = {key: value for key, value in options.items() if key not in part.where}
    return {key: value for key, value in kept.items() if value is not None or key not in part.later}


def module_of(name: str) -> ModuleType:
    """The module of reader `name`; ValueError lists the known ones."""
    known = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)
    if name in known:
        return import_module(f"{__name__}.{name}")
    raise ValueError(f"dataset.name: there is no reader {name!r}; known: {', '.join(known)}")


@functools.cache
def source_digest(name: str, structure_name: str) -> str:
    """Digest of the code that makes the features of reader `name` and writes them; part of their key.

    It covers the reader's module and what that imports, directly or not, from this package; and of other code of the stages
    each function, class and constant that these name, that divides blocks into splits, or by which the structure derives
    what is stored. Of a reader that an installed package offers it covers the whole package.
    """
    module, stages = module_of(name), __name__.rpartition(".")[0]
    files = {**files_beside(Path(str(module.__file__))), **_imported(module.__name__)}
    names = {f"{stages}.featurize._SplittingSink", f"{stages}.featurize._divide"}
    names |= {other for file in files.values() for other in imported_names(file)}
    names |= {f"{stages}.problems.{structure_name}.derived"}
    if (file := _defining(f"{stages}.problems.{structure_name}")) is not None:
        given = given_names(file, ("for_training", "stand_ins", "unit"))
        names |= {f"{stages}.problems.{structure_name}.{other}" for other in given}
    return digest_of(files, repr(sorted(definitions(names, _defining).items())))[:12]


def _defining(module: str) -> Path | None:
    """The file of a module of the stages; None for other modules, and for those of this package, which count as files."""
    stages = __name__.rpartition(".")[0]
    if module in (__name__, f"{stages}.featurize"):
        return _file([str(Path(__file__).parents[1])], module.removeprefix(f"{stages}."))
    if module.startswith(f"{stages}.problems."):
        return _file(problems.__path__, module.removeprefix(f"{stages}.problems."))
    return None


def _imported(module: str) -> dict[str, Path]:
    """The files of a module of this package and of all that it imports from this package, by module."""
    imported: dict[str, Path] = {}
    to_see = [module]
    while to_see:
        name = to_see.pop()
        inner = name.removeprefix(f"{__name__}.").split(".")
        for depth in range(1, len(inner) + 1):  # with the packages that it lies in
            relative = ".".join(inner[:depth])
            file = _file(__path__, relative)
            if file is not None and relative not in imported:
                imported[relative] = file
                to_see += [other for other in imported_names(file) if other.startswith(f"{__name__}.")]
    return imported


def _file(path: Iterable[str], module: str) -> Path | None:
    """The file of a module of the package whose folders are `path`."""
    stems = [Path(root, *module.split(".")) for root in path]
    files = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    return next(filter(Path.is_file, files), None)


def _data_folder(name: str) -> str:
    """Folder of the raw data of reader `name` on this machine, for configurations that do not give one."""
    folder = Path(os.environ.get("GAPWISE_DATA", "../shared/data")).expanduser() / FOLDERS.get(name, name)
    if not folder.is_dir():
        raise DataError(
            f"dataset.root: must be given, as in dataset.root=...; there is no {folder} (GAPWISE_DATA={folder.parent})"
        )
    return str(folder)


def unpacked(file: Path) -> bytes:
    """The contents of a file, decompressed if it ends in .gz; DataError names it if it cannot be."""
    try:
        return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{file}: there is no such file") from error
    except UNREADABLE as error:
        raise DataError(f"{file}: cannot be read: {error}; get the file again, or decompress it yourself") from error


def has_specimen(name: str) -> bool:
    """Whether reader `name` knows the types of its arrays before it reads any data."""
    return offered(name).specimen is not None


def specimen(options: Facts) -> Encoded:
    """Tiny training blocks with arrays of the types that the reader called ``options["name"]`` writes."""
    module = module_of(str(options["name"]))
    part = offered_by(module)
    if part.specimen is None:
        raise ValueError(f"{module.__name__} does not define specimen(options, sink)")
    reader: Reader = module.open(_own(part, options))
    sink = Blocks(reader.structure)
    facts, arrays = part.specimen(options, sink), sink.arrays("train")
    return Encoded(reader.structure, arrays, with_unit(capabilities(reader.structure).unit, facts, arrays))


FOLDERS = {"conll": "conll2000", "msrc": "msrc_v2", "stanford": "stanford_bg", "weizmann": "horses"}
"""Folders of raw data under $GAPWISE_DATA whose names are not their reader's."""


class Blocks:
    """A sink in memory: every split as the arrays that a feature store would return.

    As in the store, blocks also get what their structure derives from them. `shared` holds the arrays of all splits.
    With `decoding`, stand-ins take the place of what decoding does not read.
    """

    def __init__(
        self, structure_name: str, shared: Mapping[str, np.ndarray] | None = None, decoding: bool = False
    ) -> None:
        part, derived = capabilities(structure_name), structure(structure_name).derived
        self.derived: Callable[..., dict[str, np.ndarray]] = (part.stand_ins if decoding else None) or derived
        self.for_training, self.written_at_once = part.for_training or dict, part
        self.whole: dict[str, dict[str, np.ndarray]] = defaultdict(dict, {"": dict(shared or {})})
        self.blocks: dict[str, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))

    def append(self, split: str, **arrays: np.ndarray) -> None:
        if split == "train":
            arrays = self.for_training(arrays)
        for name, array in {**arrays, **self.derived(**{**self.whole[""], **arrays})}.items():
            self.blocks[split][name].append(np.asarray(array))

    def put(self, split: str, name: str, array: np.ndarray) -> None:
        self.whole[split][name] = np.asarray(array)

    def arrays(self, split: str) -> dict[str, np.ndarray]:
        """Arrays of one split, the shared ones included."""
        return self._with(self.whole[split], self.blocks[split])

    def part(self, split: str, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """The same for the blocks of a split that are `chosen`, bool (blocks,), in their order."""
        rows = np.flatnonzero(chosen)
        appended = {name: [blocks[i] for i in rows] for name, blocks in self.blocks[split].items()}
        return self._with(taken(self.whole[split], self.written_at_once, chosen), appended)

    def _with(self, whole: Mapping[str, np.ndarray], blocks: Mapping[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
        arrays = {**self.whole[""], **whole}
        for name, parts in blocks.items():
            arrays[name] = np.concatenate(parts)
            arrays[f"{name}_ptr"] = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        return arrays


def taken(arrays: Mapping[str, np.ndarray], part: Capabilities, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The `chosen` blocks, bool (blocks,), of arrays that a reader wrote at once; arrays without blocks as they are."""
    chosen_arrays = {name: array[chosen] if name in part.whole else array for name, array in arrays.items()}
    if part.rows and part.rows[0] in arrays:
        pointer, *names = part.rows
        sizes = np.diff(arrays[pointer])
        start = np.append(0, np.cumsum(sizes[chosen])).astype(arrays[pointer].dtype)
        chosen_arrays |= {pointer: start, **{name: arrays[name][np.repeat(chosen, sizes)] for name in names}}
    return chosen_arrays


@dataclass(frozen=True)
class Encoded:
    """New inputs as one split: ``stages.problems.build(structure, arrays, meta)`` gives its problem.

    The truth is unknown: all ``labels`` are 0, and losses and metrics of these blocks mean nothing.
    """

    structure: str
    arrays: dict[str, np.ndarray]
    """As a feature store returns them for a split: ragged arrays with their ``<name>_ptr``, and the shared ones."""
    meta: Record
    known: Known | None = None
    """How much of the input has weights, if the encoder tells."""


class FeatureMap:
    """The feature map of a data set, restored from its feature store; needs neither raw data nor options.

    Parameters
    ----------
    meta : mapping
        Facts of the store (``meta.json``).
    shared : mapping
        Its shared arrays by name (``shared/*.npy``), vocabularies and codebooks among them.
    """

    def __init__(self, meta: Facts, shared: Mapping[str, np.ndarray]) -> None:
        restore = offered(meta["dataset"]).encoder
        if restore is None:
            raise DataError(
                f"dataset.name={meta['dataset']}: this reader cannot encode new inputs; its module must define "
                "encoder(meta, shared)"
            )
        self.meta, self.shared = dict(meta), dict(shared)
        self.encoder: Encoder = restore(self.meta, self.shared)

    def encode(self, raw: Raw, map_blocks: MapBlocks | None = None) -> Encoded:
        """Arrays of the new inputs `raw`, the same bits that featurize would write for them in a test split.

        The reader's module documents what `raw` must be; DataError says what is wrong with it. Without `map_blocks`,
        blocks are made one after the other. What only solving and verifying read is missing, as in a test split.
        Code of the reader that has changed since the features were made is a warning.
        """
        if self.meta.get("reader") not in (None, source_digest(self.meta["dataset"], self.meta["structure"])):
            log.warning(
                "dataset.name=%s: the code of this reader has changed since the training; predictions are right only if it "
                "still makes the same features",
                self.meta["dataset"],
            )
        sink = Blocks(self.meta["structure"], self.shared, decoding=True)
        known = self.encoder.encode(raw, sink, map if map_blocks is None else map_blocks)
        return Encoded(self.meta["structure"], sink.arrays(NEW), self.meta, known)
