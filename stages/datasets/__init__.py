"""Readers of raw data: one module a data set, with one class derived from `Reader`. A reader depends on neither solver nor
storage.

What all of them share is in `common`; what some share in `arrays`, `text`, `vision`, `poses` and `alignment`.
"""

from __future__ import annotations

import logging
import os
import pkgutil
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np

from gapwise.parts import digest_of, files_beside, with_parts
from gapwise.records import Facts, Record
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
from gapwise.stages.problems import VERSIONS, capabilities, home_of
from gapwise.stages.problems.losses import with_unit

__all__ = (
    "NEW",
    "UNREADABLE",
    "Blocks",
    "DataError",
    "Encoded",
    "Encoder",
    "FeatureMap",
    "Known",
    "MapBlocks",
    "NewInput",
    "NothingKnown",
    "OptionError",
    "Predicted",
    "Raw",
    "Reader",
    "Report",
    "Shown",
    "Sink",
    "label_names",
    "open_dataset",
    "reader_of",
    "science",
    "specimen",
    "taken",
    "tell_known",
    "unpacked",
    "version_of",
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


def version_of(name: str, structure_name: str) -> str:
    """The versions of reader `name` and of its structure, part of the features' key; of a user's part a digest of its code.

    That covers its file, and of a part that an installed package offers the whole package.
    """
    homes = (
        (f"{__name__}.{name}", reader_of(name).version),
        (home_of(structure_name), VERSIONS.get(structure_name, 1)),
    )
    stages, versions = Path(__file__).resolve().parents[1], []
    for module, version in homes:
        spec = find_spec(module)
        assert spec is not None
        file = Path(str(spec.origin)).resolve()
        ours = file.is_relative_to(stages)
        versions.append(str(version) if ours else digest_of({"": file, **files_beside(file)})[:12])
    return ".".join(versions)


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
        A reader or structure that has another version than when the features were made is a warning.
        """
        if self.meta.get("reader") not in (None, version_of(self.meta["dataset"], self.meta["structure"])):
            log.warning(
                "dataset.name=%s: the code of this reader has changed since the training; predictions are right only if it "
                "still makes the same features",
                self.meta["dataset"],
            )
        sink = Blocks(self.meta["structure"], self.shared, decoding=True)
        known = self.encoder.encode(raw, sink, map if map_blocks is None else map_blocks)
        return Encoded(self.meta["structure"], sink.arrays(NEW), self.meta, known)
