"""Readers of raw data: one module a data set, with one class derived from `Reader`. A reader depends on neither solver nor
storage.

What all of them share is in `common`; what some share in `arrays`, `text`, `vision`, `poses` and `alignment`.
"""

from __future__ import annotations

import functools
import logging
import os
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np

from gapwise.parts import digest_of, files_beside, with_parts
from gapwise.records import Facts, Record
from gapwise.stages import problems
from gapwise.stages.datasets.common.files import UNREADABLE, DataError, unpacked
from gapwise.stages.datasets.common.options import OptionError
from gapwise.stages.datasets.common.reader import (
    NEW,
    Encoder,
    Known,
    MapBlocks,
    NewInput,
    NothingKnown,
    Predicted,
    Raw,
    Reader,
    Report,
    Shown,
    Sink,
    label_names,
    tell_known,
)
from gapwise.stages.datasets.common.sinks import Blocks, Encoded, taken
from gapwise.stages.problems import capabilities
from gapwise.stages.problems.losses import with_unit
from gapwise.stages.problems.user_code import definitions, given_names, imported_names

__all__ = (
    "NEW", "UNREADABLE", "Blocks", "DataError", "Encoded", "Encoder", "FeatureMap", "Known", "MapBlocks", "NewInput",
    "NothingKnown", "OptionError", "Predicted", "Raw", "Reader", "Report", "Shown", "Sink", "label_names", "open_dataset",
    "reader_of", "science", "source_digest", "specimen", "taken", "tell_known", "unpacked",
)  # fmt: skip
__path__ = with_parts(__path__, "datasets")

log = logging.getLogger("gapwise")

EXTRAS = {"h5py": "[hdf5]"}
"""Packages that installing Gapwise alone does not bring."""

FOLDERS = {"conll": "conll2000", "msrc": "msrc_v2", "stanford": "stanford_bg", "weizmann": "horses"}
"""Folders of raw data under $GAPWISE_DATA whose names are not their reader's."""


def reader_of(name: str) -> type[Reader]:
    """The class of the reader called `name`; ValueError lists the known ones."""
    module = module_of(name)
    classes = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Reader)]
    own = [kind for kind in classes if kind.__module__ == module.__name__]
    if len(own) != 1:
        raise ValueError(f"{module.__name__}: expected one class derived from gapwise.datasets.Reader, got {len(own)}")
    return own[0]


def module_of(name: str) -> ModuleType:
    """The module of reader `name`; ValueError lists the known ones."""
    known = sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)
    if name in known:
        return import_module(f"{__name__}.{name}")
    raise ValueError(f"dataset.name: there is no reader {name!r}; known: {', '.join(known)}")


def open_dataset(name: str, options: Facts) -> Reader:
    """The reader called `name` with these options; ValueError lists the known readers."""
    kind = reader_of(name)
    for package in kind.needs:
        if find_spec(package) is None:
            raise OptionError(
                f"dataset.name={name}: needs the Python package {package}, which is not installed; "
                f'pip install "gapwise{EXTRAS.get(package, "")}" brings it'
            )
    if "root" in options and options["root"] is None:
        options = {**options, "root": _data_folder(name)}
    own = {key: at_home(value) if key in kind.where else value for key, value in options.items()}
    if own.get("validation") not in [*kind.validations]:
        own.pop("validation", None)  # blocks are held out of whatever the reader writes
    return kind.open(own)


def at_home(value: object) -> object:
    """A path that begins with ~, or a list of paths, on this machine; any other value as it is."""
    if isinstance(value, list | tuple):
        return [*map(at_home, value)]
    return os.path.expanduser(value) if isinstance(value, str | Path) else value


def science(options: Facts) -> Record:
    """The options of a data set that determine its features: not those that say where files are, and not those left null."""
    where = reader_of(str(options["name"])).where
    return {key: value for key, value in options.items() if key not in where and value is not None}


def specimen(options: Facts) -> Encoded:
    """Tiny training blocks with arrays of the types that the reader called ``options["name"]`` writes."""
    reader = open_dataset(str(options["name"]), options)
    sink = Blocks(reader.structure)
    facts, arrays = reader.specimen(sink), sink.arrays("train")
    return Encoded(reader.structure, arrays, with_unit(capabilities(reader.structure).unit, facts, arrays))


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
        self.meta, self.shared = dict(meta), dict(shared)
        self.encoder: Encoder = reader_of(meta["dataset"]).encoder(self.meta, self.shared)

    def encode(self, raw: Raw, map_blocks: MapBlocks | None = None) -> Encoded:
        """Arrays of the new inputs `raw`, the same bits that featurize would write for them in a test split.

        The reader documents what `raw` must be; DataError says what is wrong with it. Without `map_blocks`,
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
