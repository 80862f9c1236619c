"""What a walk leaves: the attributes of its path, the cells between its breakpoints, how it ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

import numpy as np

from gapwise.records import Record
from gapwise.stages.problems.certainty import certainty_of
from gapwise.stages.solver.engine import Engine
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.path.rule import attributes_of
from gapwise.stages.verdict import claims
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.results import path_arrays
from gapwise.storage.sink import MemorySink

NUMBERS = ("lambda", "lambda_low", "gap", "hinge", "loss_dual", "norm2")
"""The argument of `PathRule.model`."""


class Columns(Protocol):
    """A sink that knows the numbers of all breakpoints."""

    @property
    def columns(self) -> Callable[[tuple[str, ...]], dict[str, np.ndarray]]:
        """columns(names): one number a breakpoint, in the order in which they were solved."""


def status_of(engine: Engine, sink: Columns) -> Status:
    """How the walk ended; given lambdas have ended with the first limit that one of them reached."""
    assert engine.status is not None
    if engine.status is not Status.CONVERGED or not engine.task.path.given:
        return engine.status
    statuses = [list(Status)[int(code)] for code in sink.columns(("status",))["status"]]
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)


def cells_of(engine: Engine, sink: Columns) -> dict[str, np.ndarray]:
    """The model of every lambda of a path (`PathRule.model`); {} of given lambdas."""
    columns = sink.columns(NUMBERS)
    order = np.argsort(-columns["lambda"], kind="stable")
    return engine.rule.model({name: column[order] for name, column in columns.items()})


def kept_of(engine: Engine) -> list[int] | None:
    """Numbers of the breakpoints that the certificate of an open-ended path rests on; None: all."""
    rule = engine.rule.open_end()
    return None if rule is None else rule.supporting


def attributes(engine: Engine, status: Status, key: str) -> Record:
    """The attributes of path.zarr."""
    task, solver, start, rule = engine.task, engine.solver, engine.start, engine.rule.open_end()
    dual_point = solver.options.capabilities.certifies
    return {
        "key": key,
        "seed": task.seed,
        "status": status.value,
        "status_meanings": [s.value for s in Status],
        "method": solver.options.method,
        **attributes_of(task.path),
        "certified": claims(
            exact=task.path.can.exact,
            dual_point=solver.options.capabilities.certifies,
            sense=certainty_of(task.problem),
        ),
        "certainty": engine.certainty,
        "dual_point": dual_point,
        "view": solver.iterate.views[0],
        "cached_view": solver.iterate.views[1],
        "between": engine.rule.capabilities.between,
        "own_primal": solver.schedule.rewrites_w,
        **solver.schedule.facts(),
        "n": task.problem.n,
        "d": task.problem.d,
        **({} if start is None else start.scalars()),
        **({} if rule is None else rule.attributes()),
    }


def in_memory(engine: Engine, sink: MemorySink, key: str) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) as `storage.results.read_path` would read them, had the walk been written."""
    arrays = path_arrays([b.record() for b in sink.breakpoints], cells_of(engine, sink), kept_of(engine))
    attrs = {"format_version": FORMAT_VERSION, **attributes(engine, status_of(engine, sink), key)}
    return arrays, json.loads(json.dumps(attrs))
