"""Work on blocks in other processes: what is sent to them, and what they keep open.

An errand names a function of a module, a split of a feature store, a file with w, and blocks. Problems and features are
never sent: each process opens the feature store itself, once. Of a disk it reads the pages that hold the blocks of its
errands; of a URL the whole store, once on each machine (`storage.backend.cache`).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import platform
import socket
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import llvmlite.binding as llvm
import numpy as np
from numba import config

from gapwise import parts
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.parallel import BlockFunction
from gapwise.stages.problems.protocol import Problem, frozen
from gapwise.storage.backend import Location, location

T = TypeVar("T")
R = TypeVar("R")


class MapTasks(Protocol):
    """map_tasks(fn, items, places): fn(item) for every item, in order, in other processes; both must pickle.

    `places`, in [0, 1), of the items: the same go to the same worker while it can take them.
    """

    def __call__(
        self, fn: Callable[[T], R], items: Sequence[T], places: Sequence[float] | None = None, /
    ) -> list[R]: ...


MUST_AGREE = ("sources", "python", "numpy", "numba", "distributed", "processor")
"""Facts about a process that must be the same everywhere; otherwise the last bits, or everything, may differ."""


class WorkerError(OSError):
    """A worker cannot do its task; the message names the machine and says what to do."""


@dataclass(frozen=True)
class Errand(Generic[R]):
    """One part of a pass: everything that is sent to a worker."""

    fn: BlockFunction[R]
    features: str
    split: str
    weights: str
    blocks: range | np.ndarray
    sources: str
    """Hash of Gapwise's code in the process that sends the errand."""


@contextlib.contextmanager
def published(folder: Location, w: np.ndarray) -> Iterator[Location]:
    """`w` in a new file of `folder` for the duration of the block; names are never used again, so readers may cache."""
    folder.mkdir(parents=True, exist_ok=True)
    path, stream = folder / f"w-{uuid.uuid4().hex}.npy", io.BytesIO()
    np.save(stream, np.ascontiguousarray(w), allow_pickle=False)
    try:
        path.write_bytes(stream.getvalue())
        yield path
    finally:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the folder still holds other weights
            folder.rmdir()


class Sender:
    """An `Elsewhere`: spreads the blocks of one feature store over the processes behind `map_tasks`.

    Parameters
    ----------
    map_tasks : callable
    features : Path or UrlPath
        The feature store, under a path that means the same to every process.
    folder : Path or UrlPath
        Where w is published, likewise.
    """

    def __init__(self, map_tasks: MapTasks, features: Location, folder: Location) -> None:
        self.map_tasks, self.features, self.folder = map_tasks, features, folder

    def __call__(
        self,
        fn: BlockFunction[R],
        split: str,
        w: np.ndarray,
        parts: Sequence[range | np.ndarray],
        places: Sequence[float],
    ) -> list[R]:
        with published(self.folder, w) as path:
            errands = [Errand(fn, str(self.features), split, str(path), blocks, sources()) for blocks in parts]
            return self.map_tasks(do, errands, places)


def do(errand: Errand[R]) -> R:
    """Do an errand, on a worker."""
    blocks = np.array(errand.blocks, np.int64)
    if errand.sources != sources():
        raise WorkerError(
            f"compute: {_here()} runs another version of Gapwise or has other parts; install the same ones and "
            "restart the worker"
        )
    return errand.fn(opened(errand.features, errand.split), _weights(errand.weights), blocks)


@functools.lru_cache(maxsize=4)
def opened(features: str, split: str) -> Problem:
    """The problem of one split, opened once per process."""
    try:
        return open_problem(location(features), split)
    except FileNotFoundError:
        raise WorkerError(
            f"compute: {_here()} does not see the features in {features}; run.root has to lie on storage that every "
            "worker reaches under the same path"
        ) from None


@functools.lru_cache(maxsize=2)
def _weights(path: str) -> np.ndarray:
    try:
        where = location(path)
        return frozen(np.load(where, mmap_mode="r") if isinstance(where, Path) else np.load(where.open()))
    except FileNotFoundError:
        raise WorkerError(
            f"compute: {_here()} does not see {path}, where a file was published; run.root has to lie on storage that every "
            "worker reaches under the same path"
        ) from None


def facts(features: str | None = None) -> dict[str, str]:
    """The facts in `MUST_AGREE` about this process; also "features", the reason, if they cannot be opened."""
    versions = {
        "sources": sources(),
        "python": platform.python_version(),
        "processor": _processor(),
        **{name: version(name) for name in ("numpy", "numba", "distributed")},
    }
    if features is not None:
        try:
            opened(features, "train")
        except (ValueError, OSError, ImportError) as error:
            versions["features"] = str(error)
    return versions


@functools.cache
def sources() -> str:
    """Hash of Gapwise's own code and of the parts of one's own."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for room in ("pipeline", "stages", "storage"):
        for file in sorted((root / room).rglob("*.py")):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    for name, file in parts.sources().items():
        digest.update(name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def _processor() -> str:
    """The processor that numba compiles for."""
    options: Any = config
    name, features = options.CPU_NAME or llvm.get_host_cpu_name(), options.CPU_FEATURES
    if features is None and not options.CPU_NAME:
        features = llvm.get_host_cpu_features().flatten()
    return f"{name}-{hashlib.sha256((features or '').encode()).hexdigest()[:6]}"


def _here() -> str:
    return f"the worker on {socket.gethostname()}"
