"""Every array that is stored in zarr: name, dimensions, dtype, meaning; and how groups of them are written and read.

Raw zarr (format 3) with dimension names, so that ``xarray.open_zarr(path, consolidated=False)`` opens every group.
Dtype "label" stands for the structure's label type (uint8 or int16).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import DamagedError, Location
from gapwise.storage.files import tree_files, zarr_store

if TYPE_CHECKING:  # a solve in memory needs the layout and no zarr, which is loaded where a group is opened
    import zarr

CHUNK_BYTES = 1 << 21
"""Most bytes in a chunk: small chunks cost files (256-row chunks wrote ten times slower), large ones memory."""

COMPRESSION_LEVEL = 1
"""Supports become as small as at zarr's own level, which takes longer."""

UNREADABLE = (KeyError, IndexError, ValueError, TypeError, AttributeError, RuntimeError, MemoryError, OverflowError)
"""What zarr raises for contents it cannot read."""

LARGE, MOST_PACKED = 1 << 30, 100_000
"""Bytes of an array from which on they are compared with those of its files, and how many times more they may be: zstd
makes a chunk of zeros about 20,000 times smaller."""


class ArraySpec(NamedTuple):
    """One stored array."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    doc: str


SUPPORTS = (
    ArraySpec("support_alpha", ("atom",), "f8", "weight of a labelling in its block's dual variable"),
    ArraySpec("support_loss", ("atom",), "f8", "task loss of the labelling"),
    ArraySpec("support_label", ("label",), "label", "labels of all atoms, end to end"),
    ArraySpec("label_offset", ("atom_edge",), "i8", "labels of atom a are label_offset[a]:label_offset[a + 1]"),
)

_BREAKPOINT = ("breakpoint",)

PATH = (
    ArraySpec("lambda", _BREAKPOINT, "f8", "regularisation"),
    ArraySpec("lambda_low", _BREAKPOINT, "f8", "the certificate holds from here up to the previous breakpoint"),
    ArraySpec("gap", _BREAKPOINT, "f8", "duality gap: sum of the block gaps"),
    ArraySpec("primal", _BREAKPOINT, "f8", "primal objective"),
    ArraySpec("dual", _BREAKPOINT, "f8", "dual objective"),
    ArraySpec("hinge", _BREAKPOINT, "f8", "mean structured hinge loss at w; a bound on it where no oracle was called"),
    ArraySpec("loss_dual", _BREAKPOINT, "f8", "mean task loss of the dual point"),
    ArraySpec("norm2", _BREAKPOINT, "f8", "squared norm of w"),
    ArraySpec("effective_passes", _BREAKPOINT, "f8", "oracle calls / n spent on this lambda"),
    ArraySpec("oracle_calls", _BREAKPOINT, "i8", "max-oracle calls spent on this lambda"),
    ArraySpec("seconds", _BREAKPOINT, "f8", "seconds of solving spent on this lambda (measured, not repeatable)"),
    ArraySpec("status", _BREAKPOINT, "i1", "index into the attribute status_meanings"),
    ArraySpec("weights", ("breakpoint", "feature"), "f8", "primal point w"),
    ArraySpec("block_gap", ("breakpoint", "block"), "f8", "block gaps at w"),
    ArraySpec(
        "support_offset", ("breakpoint", "block_edge"), "i8", "atoms of block i of breakpoint b: [b, i]:[b, i + 1]"
    ),
    *SUPPORTS,
)

BOUNDS = (
    ArraySpec("bound_slack", _BREAKPOINT, "f8", "part of the gap that is due to the bounds of the approximate oracle"),
    ArraySpec("proven", _BREAKPOINT, "f8", "share of the blocks whose bound the oracle attains: a proven maximum"),
)
"""In addition to PATH where the oracle is approximate and bounded."""

TWO_POINTS = (ArraySpec("dual_norm2", _BREAKPOINT, "f8", "||q||^2 of the dual point; w may not be q / lambda"),)
"""In addition to PATH where certificates of a path rest on a primal and a dual point of each lambda."""

_CELL = ("cell",)

CELLS = (
    ArraySpec("cell_interval", _CELL, "i8", "k: between breakpoints k - 1 and k; above 0 is w = 0, alone for -1"),
    ArraySpec("cell_low", _CELL, "f8", "least lambda of the cell"),
    ArraySpec("cell_high", _CELL, "f8", "largest lambda of the cell; infinite for the first"),
    ArraySpec(
        "cell_primal", ("cell", "side"), "f8", "t: w(lambda) = min(1, scale / lambda) (t_0 w above + t_1 w below)"
    ),
    ArraySpec("cell_scale", _CELL, "f8", "scale: infinite where w does not depend on lambda within the cell"),
)
"""The model of every lambda of a path, in addition to PATH; by falling lambda."""

CELL_CERTIFICATES = (
    ArraySpec(
        "cell_dual", ("cell", "side"), "f8", "tau: shares of the dual points above and below, the rest on the truth"
    ),
    ArraySpec("cell_inner", _CELL, "f8", "<w above, w below>"),
    ArraySpec("cell_dual_inner", _CELL, "f8", "<q above, q below>, q = lambda w; psi~ for w = 0"),
)
"""What certifies the cells of a two-sided path."""

TRACE = (
    ArraySpec("trace", ("row", "column"), "f8", "one row per certificate; columns in the attribute trace_columns"),
)

_ROW = ("snapshot",)

SNAPSHOTS = (
    ArraySpec("breakpoint", _ROW, "i8", "number of the lambda it was taken at"),
    ArraySpec("lambda", _ROW, "f8", "that lambda"),
    ArraySpec("passes", _ROW, "f8", "effective passes since the beginning: oracle calls / n"),
    ArraySpec("oracle_calls", _ROW, "i8", "max-oracle calls since the beginning"),
    ArraySpec("steps", _ROW, "i8", "block steps since the beginning, cached ones included"),
    ArraySpec("seconds", _ROW, "f8", "seconds of solving since the beginning, excluding snapshots"),
    ArraySpec("stale_gap", _ROW, "f8", "sum of the last known block gaps; inf until every block has been visited"),
    ArraySpec("dual", _ROW, "f8", "dual objective"),
    ArraySpec("nonuniformity", _ROW, "f8", "chi of the last known block gaps (O16 Def. 5); nan until all are known"),
    ArraySpec("weights", ("snapshot", "feature"), "f8", "primal point w"),
)

GAP_TRACE = (
    *SNAPSHOTS[:-1],
    ArraySpec("primal", _ROW, "f8", "primal objective at the snapshot's w, by an exact pass made afterwards"),
    ArraySpec("gap", _ROW, "f8", "duality gap: primal - dual"),
    ArraySpec("curvature_nonuniformity", _ROW, "f8", "chi of R_i^2, over the oracle's answers at the snapshots so far"),
)

TRACE_LOSSES = (ArraySpec("test_loss", _ROW, "f8", "mean task loss on the test blocks at the snapshot's w"),)
"""In addition to GAP_TRACE with `snapshots.test`."""

LOSSES = (
    ArraySpec("train_loss", _BREAKPOINT, "f8", "mean task loss on the training blocks"),
    ArraySpec("test_loss", _BREAKPOINT, "f8", "mean task loss on the test blocks"),
    ArraySpec("validation_loss", _BREAKPOINT, "f8", "mean task loss on the validation blocks"),
    ArraySpec("validation_standard_error", _BREAKPOINT, "f8", "standard error of that mean, over blocks"),
)

EVALUATED = "evaluated_"
"""Prefix of `lambda` and of the measures at all lambdas where a path was evaluated, breakpoints and others; their dimension
is `evaluated`."""


def path_specs(names: Container[str]) -> tuple[ArraySpec, ...]:
    """PATH, and those of BOUNDS and TWO_POINTS that are among `names`."""
    return (*PATH, *(spec for spec in (*BOUNDS, *TWO_POINTS) if spec.name in names))


def misfits(
    arrays: Mapping[str, np.ndarray | zarr.Array], specs: Iterable[ArraySpec], sizes: Mapping[str, int]
) -> list[str]:
    """A line for each array with another dtype or shape than its spec; dimensions have the given `sizes`, or one common."""
    known, faults = {dim: (size, "the layout") for dim, size in sizes.items()}, []
    for spec in specs:
        array, wrong = arrays[spec.name], f"expected {spec.dtype}{spec.dims}"
        if (spec.dtype == "label" or array.dtype == np.dtype(spec.dtype)) and array.ndim == len(spec.dims):
            pairs = zip(spec.dims, array.shape, strict=True)
            others = [(dim, *known.setdefault(dim, (size, spec.name)), size) for dim, size in pairs]
            wrong = ", ".join(f"{by} has {size} along {dim}" for dim, size, by, own in others if own != size)
        if wrong:
            faults.append(f"{spec.name}: is {array.dtype} {array.shape}, {wrong}")
    return faults


def _chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Whole rows where they are small enough; at least one element in every dimension."""
    chunks = [1] * len(shape)
    left = CHUNK_BYTES // itemsize
    for axis in reversed(range(len(shape))):
        chunks[axis] = max(1, min(shape[axis], left))
        left = max(1, left // chunks[axis])
    return tuple(chunks)


def create_array(group: zarr.Group, spec: ArraySpec, shape: tuple[int, ...], dtype: np.dtype | str) -> zarr.Array:
    """An empty array of the layout in an open group.

    All its chunks are stored, whatever they hold, because zarr reads a missing chunk as the fill value. NaN or -1 says to
    other readers of zarr that a number is missing.
    """
    from zarr.codecs import ZstdCodec

    dtype = np.dtype(dtype)
    return group.create_array(
        spec.name,
        shape=shape,
        chunks=_chunks(shape, dtype.itemsize),
        dtype=dtype,
        fill_value=np.nan if dtype.kind == "f" else np.array(-1).astype(dtype),
        config={"write_empty_chunks": True},
        compressors=ZstdCodec(level=COMPRESSION_LEVEL),
        dimension_names=spec.dims,
        attributes={"description": spec.doc},
        overwrite=True,
    )


def open_group(path: Location, mode: Literal["r", "a"] = "r") -> zarr.Group:
    """A zarr group, wherever it lies; DamagedError if its metadata cannot be read."""
    import zarr

    with readable(path, "the metadata"):
        store = zarr_store(path, read_only=mode == "r")
        return zarr.open_group(store, mode=mode, zarr_format=3)  # arrays of format 2 may hold pickled objects


def new_group(path: Location, attrs: Facts) -> zarr.Group:
    """An empty zarr group with these attributes, in the place of what lies there."""
    import zarr

    return zarr.open_group(path, mode="w", zarr_format=3, attributes=dict(attrs))


@contextlib.contextmanager
def readable(path: Location, name: str) -> Iterator[None]:
    """Turn whatever zarr raises on contents it cannot read into a DamagedError that names the group and its part `name`."""
    try:
        yield
    except DamagedError:
        raise
    except UNREADABLE as error:
        raise DamagedError(
            f"{path}: {name} is missing or cannot be read ({type(error).__name__}: {error}); delete {path} and repeat the "
            "command, which makes it again"
        ) from error


def write_group(
    path: Location,
    specs: tuple[ArraySpec, ...],
    arrays: Mapping[str, np.ndarray],
    attrs: Facts,
    go_on: Callable[[], None] = lambda: None,
) -> None:
    """Write all arrays of `specs` into a new zarr group; `go_on` is called before each and may raise an error to end it.

    Raises
    ------
    KeyError
        If an array of the layout is missing.
    TypeError
        If one has another dtype or number of dimensions than the layout says.
    """
    group = new_group(path, attrs)
    for spec in specs:
        go_on()
        array = checked(spec, arrays[spec.name])
        create_array(group, spec, array.shape, array.dtype)[...] = array


def checked(spec: ArraySpec, array: np.ndarray) -> np.ndarray:
    """The array if it is what the layout says."""
    array = np.asarray(array)
    ok = array.dtype in (np.uint8, np.int16) if spec.dtype == "label" else array.dtype == np.dtype(spec.dtype)
    if not ok or array.ndim != len(spec.dims):
        raise TypeError(f"{spec.name}: the layout says {spec.dtype}{spec.dims}, got {array.dtype}{array.shape}")
    return array


Names = tuple[str, ...] | Callable[[str], bool] | None
"""Arrays to read: by name, those whose names it accepts, or all."""


def read_group(path: Location, names: Names = None) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) of a group, or some arrays of it; DamagedError names one that cannot be read."""
    group = open_group(path)
    if isinstance(names, tuple):
        contents = {name: _contents(path, group, name) for name in names}
    else:
        with readable(path, "the list of arrays"):  # which are then open
            found = {name: array for name, array in sorted(group.arrays()) if names is None or names(name)}
        contents = {name: _contents(path, group, name, array) for name, array in found.items()}
    return contents, dict(group.attrs)


def _contents(path: Location, group: zarr.Group, name: str, array: zarr.Array | None = None) -> np.ndarray:
    """All of an array, which is opened if it is not given."""
    with readable(path, f"array {name}"):
        return np.asarray(whole(path, name, group[name] if array is None else array)[...])


def array_of(path: Location, name: str) -> zarr.Array:
    """An array of the group at `path`, as `whole` lets it pass; KeyError if there is none."""
    return whole(path, name, open_group(path)[name])


def whole(path: Location, name: str, array: zarr.Array | zarr.Group) -> zarr.Array:
    """The array `name` of the group at `path`, unless it is something else, claims far more bytes than its files hold, or
    lacks a chunk.

    A fill value of 0 is that of earlier versions, which stored no chunks of zeros.
    """
    import zarr

    if not isinstance(array, zarr.Array):
        raise TypeError(f"{name} is not an array")
    claimed = math.prod(array.shape) * array.dtype.itemsize
    if claimed > LARGE and claimed > MOST_PACKED * (held := array.nbytes_stored()):
        raise DamagedError(
            f"{path}: {name}: says that it has {claimed:,} bytes, but its files hold {held:,}; it is damaged"
        )
    chunks = len(tree_files(path / name)) - 1  # one file describes the array
    if array.fill_value != 0 and chunks < array.nchunks:
        raise ValueError(f"{name}: chunks missing: {array.nchunks - chunks:,} of {array.nchunks:,}")
    return array
