"""``path.zarr`` and ``trace.zarr``: the results of a solve, for verify, evaluate, people and programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gapwise.records import Facts, Record
from gapwise.storage.backend import DamagedError, Location
from gapwise.storage.files import aside, make_durable, publish
from gapwise.storage.format import FORMAT_VERSION, check_format
from gapwise.storage.layout import (
    CELL_CERTIFICATES,
    CELLS,
    EVALUATED,
    LOSSES,
    TRACE,
    ArraySpec,
    Names,
    array_of,
    create_array,
    misfits,
    new_group,
    open_group,
    path_specs,
    read_group,
    readable,
    whole,
    write_group,
)

if TYPE_CHECKING:
    import zarr

RAGGED = {"support_alpha": "atom", "support_loss": "atom", "support_label": "label", "label_offset": "atom_edge"}
"""Arrays of PATH that are concatenated over breakpoints; all others have one row per breakpoint."""


def stack(records: Sequence[Facts]) -> dict[str, np.ndarray]:
    """Arrays of PATH, and of BOUNDS and TWO_POINTS if there are any, from breakpoints as mappings.

    `support_offset` (n + 1,) and `label_offset` begin at 0 in each.
    """
    out: dict[str, np.ndarray] = {}
    for spec in path_specs(records[0]):
        values = [record[spec.name] for record in records]
        if spec.name == "label_offset":
            out[spec.name] = _joined_offsets(values)
        elif spec.name in RAGGED:
            out[spec.name] = np.concatenate(values)
        elif spec.name == "support_offset":
            starts = np.concatenate([[0], np.cumsum([v[-1] for v in values])[:-1]])
            out[spec.name] = np.stack(values) + starts[:, None]
        else:
            out[spec.name] = np.asarray(values, dtype=spec.dtype)
    return out


def _joined_offsets(values: Sequence[np.ndarray]) -> np.ndarray:
    lengths = np.concatenate([np.diff(v) for v in values])
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def path_arrays(
    records: Sequence[Facts],
    cells: Mapping[str, np.ndarray] | None = None,
    selected: Sequence[int] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that `write_path` writes, of breakpoints as mappings in the order in which they were solved."""
    if selected is not None and len(selected) < len(records):
        records = selected_records(records, selected)
    arrays = stack(records)
    if not cells:
        return arrays
    order = np.argsort(-arrays["lambda"], kind="stable")
    ranked = {name: array if name in RAGGED else array[order] for name, array in arrays.items()}
    return {**ranked, **{spec.name: cells[spec.name] for spec in CELL_SPECS if spec.name in cells}}


CELL_SPECS = (*CELLS, *CELL_CERTIFICATES)
"""The arrays of a path that say what holds between its breakpoints."""


def write_path(
    path: Location,
    segments: Sequence[Location],
    last: Mapping[str, np.ndarray] | None,
    attrs: Facts,
    cells: Mapping[str, np.ndarray] | None = None,
    selected: Sequence[int] | None = None,
) -> None:
    """Join segments and the breakpoints after them into one group; without `selected` one segment is in memory at a time.

    The result does not depend on how the breakpoints were divided into segments. With
    `cells` (arrays of CELLS, and of CELL_CERTIFICATES if there are any), which count breakpoints by falling lambda,
    breakpoints are sorted that way; their atoms and labels stay in the order in which they were solved. With `selected`,
    only the breakpoints of these numbers are written; the work of each other one is counted with the next selected one.
    """
    shapes = [_shapes(segment) for segment in segments]
    dtypes = {}
    if segments:
        dtypes = {name: array.dtype for name, array in open_group(segments[0]).arrays()}
    if last is not None:
        shapes.append({name: array.shape for name, array in last.items()})
        dtypes = {name: array.dtype for name, array in last.items()}
    if selected is not None and len(selected) < sum(shape["lambda"][0] for shape in shapes):
        parts = [read_group(segment)[0] for segment in segments] + ([] if last is None else [dict(last)])
        records = selected_records([_record(part, b) for part in parts for b in range(part["lambda"].size)], selected)
        write_path(path, (), stack(records), attrs, cells)  # all of them are in memory
        return
    if not shapes:
        raise ValueError(f"{path}: there is no breakpoint to write")
    group = new_group(aside(path), {"format_version": FORMAT_VERSION, **attrs})
    target = {}
    for spec in path_specs(dtypes):
        rows = sum(shape[spec.name][0] for shape in shapes)
        if spec.name == "label_offset":
            rows -= len(shapes) - 1
        target[spec.name] = create_array(group, spec, (rows, *shapes[0][spec.name][1:]), dtypes[spec.name])
    for spec in CELL_SPECS:
        if cells and spec.name in cells:
            create_array(group, spec, cells[spec.name].shape, cells[spec.name].dtype)[...] = cells[spec.name]
    lams = [read_group(s, ("lambda",))[0]["lambda"] for s in segments] + ([] if last is None else [last["lambda"]])
    rank = np.empty(sum(map(len, lams)), np.int64)
    rank[np.argsort(-np.concatenate(lams), kind="stable")] = np.arange(rank.size)
    breakpoint = atom = label = 0
    for k in range(len(shapes)):
        part = last if k == len(segments) and last is not None else read_group(segments[k])[0]
        rows, atoms, labels = part["lambda"].size, part["support_alpha"].size, part["support_label"].size
        for name, array in part.items():
            if name == "label_offset":
                target[name][atom : atom + atoms + 1] = array + label
            elif name == "support_label":
                target[name][label : label + labels] = array
            elif name in RAGGED:
                target[name][atom : atom + atoms] = array
            else:
                where = slice(breakpoint, breakpoint + rows)
                values = array + atom if name == "support_offset" else array
                _write_rows(target[name], rank[where] if cells else np.arange(where.start, where.stop), values)
        breakpoint, atom, label = breakpoint + rows, atom + atoms, label + labels
    publish(path)


def _write_rows(array: zarr.Array, rows: np.ndarray, values: np.ndarray) -> None:
    """array[rows] = values. Where a row has chunks of its own, consecutive rows are written as a slice: an index array
    makes zarr copy every chunk, which took twice as long as everything else for the weights of CoNLL-2000."""
    if array.chunks[0] > 1:
        array.oindex[rows] = values
        return
    edges = np.flatnonzero(np.diff(rows) != 1) + 1
    for first, last in pairwise([0, *edges.tolist(), rows.size]):
        array[int(rows[first]) : int(rows[last - 1]) + 1] = values[first:last]


WORK = ("effective_passes", "oracle_calls", "seconds")
"""The arrays of PATH whose sum is the work of the path."""


def selected_records(records: Sequence[Facts], selected: Sequence[int]) -> list[Record]:
    """The breakpoints numbered `selected`; the work of each other one is counted with the next selected one."""
    chosen: list[Record] = []
    waiting = dict.fromkeys(WORK, 0.0)
    for number, record in enumerate(records):
        work = {name: record[name] + waiting[name] for name in WORK}
        if number in selected:
            chosen.append({**record, **work})
        waiting = dict.fromkeys(WORK, 0.0) if number in selected else work
    for name, more in waiting.items():
        chosen[-1][name] += more
    return chosen


def _record(part: Mapping[str, np.ndarray], b: int) -> dict[str, object]:
    """Breakpoint b of stacked arrays, as `stack` takes it."""
    edges = part["support_offset"][b]
    first, last = int(edges[0]), int(edges[-1])
    labels = part["label_offset"][first : last + 1]
    dense = {name: array[b] for name, array in part.items() if name not in RAGGED}
    ragged = {
        "support_offset": edges - first,
        "support_alpha": part["support_alpha"][first:last],
        "support_loss": part["support_loss"][first:last],
        "support_label": part["support_label"][int(labels[0]) : int(labels[-1])],
        "label_offset": labels - labels[0],
    }
    return {**dense, **ragged}


def _shapes(segment: Location) -> dict[str, tuple[int, ...]]:
    """Shapes of a segment's arrays; DamagedError if one of PATH is missing."""
    shapes = {name: array.shape for name, array in open_group(segment).arrays()}
    if missing := [spec.name for spec in path_specs(shapes) if spec.name not in shapes]:
        raise DamagedError(
            f"{segment}: there is no array {missing[0]}; restore {segment.parent} from a copy, or delete it to solve again "
            "from the beginning"
        )
    return shapes


def read_path(path: Location, names: Names = None) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) of a path.zarr; FileNotFoundError if the solve stage has not written it."""
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path}: no solved path here; run the solve stage first, or give it more time (solver.max_seconds)"
        )
    arrays, attrs = read_group(path, names)
    check_format(attrs, path)
    return arrays, attrs


SERVING = ("lambda", "gap", "dual", "weights")
"""The arrays that the model of a lambda is made of, besides cells."""


def check_path(path: Location) -> None:
    """DamagedError, before any array is read, unless a path.zarr has what the model of every lambda takes.

    Arrays must have the layout's dtypes and agree on the size of every dimension, and attributes say what is certified.
    """
    group = open_group(path)
    attrs = dict(group.attrs)
    check_format(attrs, path)
    with readable(path, "an array or attribute"):
        names = {name for name, _ in group.members()}
        needed = (*SERVING, *(spec.name for spec in CELLS if "cell_low" in names or "cell_interval" in names))
        present = [spec for spec in (*path_specs(names), *CELL_SPECS) if spec.name in {*needed, *names}]
        if faults := misfits({s.name: whole(path, s.name, group[s.name]) for s in present}, present, {"side": 2}):
            raise ValueError(faults[0])
        eps, relative = attrs.get("eps"), attrs.get("relative")
        if isinstance(eps, bool) or not isinstance(eps, int | float) or not isinstance(relative, bool):
            raise ValueError(f"eps is {eps!r} and relative {relative!r}; expected a number, and true or false")


def without_weights(path: Location) -> tuple[dict[str, np.ndarray], Record]:
    """Like `read_path`, without the weights: those of all breakpoints together may not fit in memory."""
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no solved path here; run the solve stage first")
    names = tuple(sorted(name for name, _ in open_group(path).arrays() if name != "weights"))
    return read_path(path, names)


ITERATION = "iteration_"
"""Prefix of a method's own columns in trace.zarr."""


def weights_of(path: Location) -> Callable[[int], np.ndarray]:
    """Reads one breakpoint's weights (d,) at a time; DamagedError if they cannot be read."""
    with readable(path, "array weights"):
        stored = array_of(path, "weights")

    def read(b: int) -> np.ndarray:
        with readable(path, "array weights"):
            return np.ascontiguousarray(stored[b])

    return read


def add_losses(path: Location, losses: Mapping[str, np.ndarray], evaluated: Mapping[str, np.ndarray]) -> None:
    """Write measures (train_loss, test_loss, and a structure's own) into a path.zarr.

    `losses` have one value per breakpoint; `evaluated`, which are written under names that begin with EVALUATED, one per
    lambda that was evaluated.
    """
    known = {spec.name: spec for spec in LOSSES}
    group = open_group(path, "a")
    arrays = {**losses, **{f"{EVALUATED}{name}": values for name, values in evaluated.items()}}
    for name, values in arrays.items():
        dim = "breakpoint" if name in losses else "evaluated"
        spec = known.get(name, ArraySpec(name, (dim,), "f8", f"{name} (a measure of the structure)"))
        create_array(group, spec, values.shape, values.dtype)[...] = values
    make_durable(path, [*arrays])


def write_trace(
    path: Location,
    rows: np.ndarray,
    columns: Sequence[str],
    iterations: Mapping[tuple[str, tuple[str, ...], str, str], np.ndarray] | None = None,
) -> None:
    """Write the trace of a solve, and what its method recorded of its outer iterations, one array a column.

    `iterations` has these arrays by their specs, which are those of `layout.ArraySpec`.
    """
    own = {ArraySpec(*spec): array for spec, array in (iterations or {}).items()}
    arrays = {"trace": rows, **{spec.name: array for spec, array in own.items()}}
    write_group(aside(path), (*TRACE, *own), arrays, {"trace_columns": list(columns)})
    publish(path)


def read_iterations(run: Location) -> dict[str, np.ndarray]:
    """What the method of a finished solve recorded of its outer iterations, by column; {} if it records nothing."""
    arrays, _ = read_group(run / "trace.zarr")
    return {name.removeprefix(ITERATION): array for name, array in arrays.items() if name.startswith(ITERATION)}


def read_trace(run: Location) -> dict[str, np.ndarray]:
    """The trace of a finished solve, by column: one entry per certificate."""
    arrays, attrs = read_group(run / "trace.zarr")
    return dict(zip(attrs["trace_columns"], arrays["trace"].T, strict=True))
