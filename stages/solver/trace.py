"""What a solve leaves in trace.zarr: a row for each exact pass, and what the method records of its own iterations."""

from __future__ import annotations

import numpy as np

from gapwise.stages.solver.counts import CERTIFIED, TRACE
from gapwise.stages.solver.method import AnyMethod
from gapwise.stages.solver.packed import ArraySpec
from gapwise.stages.solver.path.rule import PathRule


def trace_of(solver: AnyMethod, rule: PathRule) -> tuple[np.ndarray, tuple[str, ...]]:
    """The trace, (rows, columns), and its columns: `TRACE`, and where the rule knows it, the eps certified at every lambda.

    That stands in the last row of each solved lambda, and is nan in all others.
    """
    rows, known = trace_rows(solver), rule.open_end()
    if known is None:
        return rows, TRACE
    column, numbers = np.full(len(rows), np.nan), rows[:, TRACE.index("breakpoint")]
    for number, eps in enumerate(known.certified):
        column[np.flatnonzero(numbers == number)[-1:]] = eps
    return np.column_stack([rows, column]), (*TRACE, CERTIFIED)


def trace_rows(solver: AnyMethod) -> np.ndarray:
    """The trace as an array, (rows, len(TRACE))."""
    return np.array(solver.trace, dtype=float).reshape(-1, len(TRACE))


def iterations_of(solver: AnyMethod) -> dict[ArraySpec, np.ndarray]:
    """What a method records of its outer iterations: the arrays of its specs whose dimension is `iteration`."""
    specs = [spec for spec in solver.specs if spec[1] == ("iteration",)]
    arrays = solver.packed()[0] if specs else {}
    return {spec: arrays[spec[0]] for spec in specs}
