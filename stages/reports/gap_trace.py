"""Gap trace: the duality gap along a solve, and optionally the test loss, computed afterwards from its snapshots.

P(w) of a snapshot takes one exact pass at its w. With the dual value of the same moment the true gap is P - D, while
`stale_gap` is the sum of the block gaps that the solver knew then. Without a dual point, `dual` and `gap` are nan.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gapwise.records import Record
from gapwise.stages.model.predict import predict
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.block.sampling import nonuniformity, squared_norms
from gapwise.stages.solver.oracles import answers_at
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish
from gapwise.storage.layout import GAP_TRACE, TRACE_LOSSES, open_group, read_group, write_group

Report = Callable[[int, int, str], None]


def gap_trace(
    problem: Problem,
    run_dir: Location,
    *,
    test: Problem | None = None,
    spread: Spread = HERE,
    report: Report = lambda done, total, task: None,
) -> int:
    """Write ``run_dir/gap_trace.zarr`` (arrays of `storage.layout.GAP_TRACE`) from ``run_dir/snapshots.zarr``.

    Parameters
    ----------
    test : Problem, optional
        The test blocks, if their loss is wanted (`storage.layout.TRACE_LOSSES`).

    Returns
    -------
    int
        Rows of the trace; 0 for a solve without snapshots, for which nothing is written.
    """
    source = run_dir / "snapshots.zarr"
    if not source.is_dir():
        return 0
    group = open_group(source)
    columns, _ = read_group(source, tuple(name for name in group.array_keys() if name != "weights"))
    weights, rows = group["weights"], columns["lambda"].size
    columns.setdefault("nonuniformity", np.full(rows, np.nan))  # of solves before there was this column
    primal, losses = np.empty(rows), np.empty(rows)
    radii, uneven = np.zeros(problem.n), np.full(rows, np.nan)
    every, sampled = np.arange(problem.n), bool(np.isfinite(columns["nonuniformity"]).any())
    for k in range(rows):
        report(k, rows, "exact gaps of snapshots")
        w = np.ascontiguousarray(weights[k], dtype=np.float64)  # type: ignore[index]
        vertices = answers_at(problem, w, range(problem.n), spread)
        if sampled:
            radii = np.maximum(radii, squared_norms(problem, every, vertices.vertex))
            uneven[k] = nonuniformity(radii)
        hinge = float(np.sum(vertices.upper_hinge)) / problem.n
        primal[k] = 0.5 * columns["lambda"][k] * norm2_of(problem, w) + hinge
        if test is not None:
            losses[k] = np.mean(predict(test, w, spread, "test")[1])
    target = run_dir / "gap_trace.zarr"
    attrs = {"certainty": certainty_of(problem)}
    own = {"gap": primal - columns["dual"], "curvature_nonuniformity": uneven}
    values = {**columns, "primal": primal, **own, "test_loss": losses}
    write_group(aside(target), GAP_TRACE if test is None else (*GAP_TRACE, *TRACE_LOSSES), values, attrs)
    publish(target)
    return rows


def read_gap_trace(run_dir: Location) -> dict[str, np.ndarray]:
    """The gap trace by column; FileNotFoundError if the run has no gap trace."""
    if not (run_dir / "gap_trace.zarr").is_dir():
        raise FileNotFoundError(f"{run_dir}: no gap trace here; solve with snapshots (snapshots.every_passes=1)")
    return read_group(run_dir / "gap_trace.zarr")[0]


def gap_trace_attributes(run_dir: Location) -> Record:
    """What the gaps of a trace are, as its attribute `certainty`."""
    return dict(open_group(run_dir / "gap_trace.zarr").attrs)
