"""Gap trace: the duality gap along a solve, computed afterwards from its snapshots.

P(w) of a snapshot takes one exact pass at its w. With the dual value of the same moment the true gap is P - D, while
`stale_gap` is the sum of the block gaps that the solver knew then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stages.parallel import HERE, Spread
from stages.problems.certainty import certainty_of
from stages.problems.protocol import Problem
from stages.solver.objective import squared_norm
from stages.solver.oracles import corners_at
from storage.backend import Location
from storage.files import aside, publish
from storage.layout import GAP_TRACE, SNAPSHOTS, open_group, read_group, write_group

Report = Callable[[int, int, str], None]


def gap_trace(
    problem: Problem,
    run_dir: Location,
    *,
    spread: Spread = HERE,
    report: Report = lambda done, total, what: None,
) -> int:
    """Write ``run_dir/gap_trace.zarr`` (arrays of `storage.layout.GAP_TRACE`) from ``run_dir/snapshots.zarr``.

    Returns
    -------
    int
        Rows of the trace; 0 for a solve without snapshots, for which nothing is written.
    """
    source = run_dir / "snapshots.zarr"
    if not source.is_dir():
        return 0
    columns, _ = read_group(source, tuple(spec.name for spec in SNAPSHOTS if spec.name != "weights"))
    weights = open_group(source)["weights"]
    rows = columns["lambda"].size
    primal = np.empty(rows)
    for k in range(rows):
        report(k, rows, "exact gaps of snapshots")
        w = np.ascontiguousarray(weights[k], dtype=np.float64)  # type: ignore[index]
        hinge = float(np.sum(corners_at(problem, w, range(problem.n), spread).upper_hinge)) / problem.n
        primal[k] = 0.5 * columns["lambda"][k] * squared_norm(w) + hinge
    target = run_dir / "gap_trace.zarr"
    attrs = {"certainty": certainty_of(problem)}
    write_group(aside(target), GAP_TRACE, {**columns, "primal": primal, "gap": primal - columns["dual"]}, attrs)
    publish(target)
    return rows


def read_gap_trace(run_dir: Location) -> dict[str, np.ndarray]:
    """The gap trace by column; FileNotFoundError if there is none."""
    if not (run_dir / "gap_trace.zarr").is_dir():
        raise FileNotFoundError(f"{run_dir}: no gap trace here; solve with snapshots (snapshots.every_passes=1)")
    return read_group(run_dir / "gap_trace.zarr")[0]


def gap_trace_attributes(run_dir: Location) -> dict[str, Any]:
    """What the gaps of a trace are, as its attribute `certainty`."""
    return dict(open_group(run_dir / "gap_trace.zarr").attrs)
