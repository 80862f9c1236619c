"""One solve of one problem, verified, its path loaded: in memory, or in a folder that makes it resumable."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gapwise.pipeline.compiling import Compiling
from gapwise.pipeline.compute.local import Compute
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Interrupted, Stop
from gapwise.pipeline.progress import solver_line
from gapwise.records import Record, flat
from gapwise.stages.choice.rising_loss import RisingLoss, check_ending
from gapwise.stages.model.solved_path import Asked, asked_for, in_memory
from gapwise.stages.problems.capabilities import certainty_of
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.problems.protocol import Problem, leaves
from gapwise.stages.solve import Session, never, restored, solve
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.events import Progress
from gapwise.stages.solver.options import WHOLE, MethodOptions, PathOptions, Status
from gapwise.stages.solver.supports import Supports
from gapwise.stages.verify import in_memory as source_in_memory
from gapwise.stages.verify import verify
from gapwise.storage.backend import Location, location
from gapwise.storage.commits import CommitStore
from gapwise.storage.files import locked, make_directory, read_json, write_json
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.mixture import PathInMemory
from gapwise.storage.results import check_path, read_path
from gapwise.storage.sink import MemorySink

log = logging.getLogger("gapwise")

RECORD = "fit.json"
"""What a folder belongs to: data and options. A solve that ends before its first commit leaves no other record."""
IN_MEMORY = "in memory"
"""The key of a path that no folder has."""
EVERY = 5.0
"""Seconds between two lines about one lambda."""
UNTIMED = ("name", "max_seconds")
"""Options of a solver that change no number."""


class Solved(NamedTuple):
    """What a solve left."""

    path: PathInMemory
    status: Status
    verified: Record | None
    """The result of `stages.verify.verify`; None if it was not asked for"""
    data: str | None
    """digest of the problem, if one was needed"""


class _Compiler:
    """Says once that the first fit compiles; the `progress` of `Compiling`."""

    said = False

    def report(self, done: int, total: int, activity: str) -> None:
        if not _Compiler.said:
            log.warning("%s: half a minute to a minute", activity)
            _Compiler.said = True


class _Teller:
    """Logs how far a solve is, at level INFO: at each lambda, and every few seconds; the `report` of a session."""

    def __init__(self) -> None:
        self.lambdas, self.next = -1, 0.0

    def __call__(self, counters: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if log.isEnabledFor(logging.INFO) and (counters["breakpoint"] > self.lambdas or now >= self.next):
            self.lambdas, self.next = counters["breakpoint"], now + EVERY
            log.info("%s", solver_line(counters))


@contextlib.contextmanager
def computing(workers: int, stop: Stop | None) -> Iterator[Compute]:
    """Threads for the blocks; says so if code is compiled meanwhile. A stop becomes the exception of its signal."""
    options = ComputeOptions(kind="serial" if workers == 1 else "threads", workers=workers)
    try:
        with Compute(options, stop) as compute, Compiling(_Compiler()):
            yield compute
    except Interrupted as end:
        raise _ended(end.signal) from end


def spread_of(compute: Compute) -> Spread:
    """How blocks of a problem in memory are spread: over threads."""
    return compute.spread(Path(), Path(), False)


def digest(problem: Problem, besides: bytes = b"") -> str:
    """Hash of all data of a problem, and of `besides`.

    Left out are the name of a user's object in this process, and the kernel's kept rows, which are workspace.
    """
    checksum = hashlib.sha256(besides)
    for name, value in leaves(problem):
        if name != "spec" and not name.startswith("rows."):
            array = np.ascontiguousarray(value)
            checksum.update(f"{name} {array.dtype} {array.shape}\0".encode())
            checksum.update(array.data if array.size else b"")
    return checksum.hexdigest()


def solved(
    problem: Problem,
    options: MethodOptions,
    path: PathOptions,
    *,
    seed: int,
    compute: Compute,
    stop: Stop | None = None,
    run_dir: str | Location | None = None,
    data: Callable[[], str] | None = None,
    check: bool = True,
    initial: Supports | None = None,
    every_seconds: float = 30.0,
    ending: RisingLoss | None = None,
    held_out: Callable[[], str] = str,
) -> Solved:
    """Solve, verify, load.

    Parameters
    ----------
    run_dir : path or URL, optional
        Where the state is committed. The same call continues what was committed there, to the same bits; other data or
        other options are refused. Without it nothing is written to disk.
    data : callable, optional
        Digest of the data; by default that of the problem.
    check : bool
        Whether to verify.
    initial : Supports, optional
        The dual point to begin at.
    ending : RisingLoss, optional
        What ends a path with `path.end=loss_rises`.
    held_out : callable
        Digest of these blocks.

    Raises
    ------
    ValueError
        If the folder belongs to another fit, or time ran out before a path had its first lambda.
    CertificateError
        If a certificate does not hold.
    KeyboardInterrupt, SystemExit
        After a signal, with what was done committed in `run_dir`.
    """
    task, spread = Task(problem, options, path, seed, initial=initial), spread_of(compute)
    check_ending(path, ending)
    if run_dir is None:
        return _in_memory(Engine.begin(task, spread), check, ending)
    where = location(run_dir)
    data_digest = (data or (lambda: digest(problem)))()
    science = _science(options, path, seed)
    if initial is not None:
        science["initial"] = hashlib.sha256(b"".join(part.tobytes() for part in initial)).hexdigest()
    if ending is not None:
        science["held_out"] = held_out()
    session = Session(spread=spread, report=_Teller(), stop=stop or never, every_seconds=every_seconds)
    make_directory(where)
    with locked(where / "lock"):
        _claim(where, {"data": data_digest, "format_version": FORMAT_VERSION, "science": science})
        status = solve(task, where, key=data_digest, science=science, session=session, ending=ending)
        if status is Status.INTERRUPTED:
            raise Interrupted(stop.signal if stop is not None else 2)
        if (where / "path.zarr").is_dir():
            return _loaded(where, data_digest, status, task, spread, check)._replace(data=data_digest)
        commit = CommitStore(where / "state", {"key": data_digest, **science}).load()
        assert commit is not None  # time ran out at a boundary, whose state is committed
        return _at_limit(restored(task, commit, spread, where / "state"), data_digest, check)._replace(data=data_digest)


def _in_memory(engine: Engine, check: bool, ending: RisingLoss | None) -> Solved:
    """Walk to the end, and give back what a folder would have."""
    sink = MemorySink()
    engine.warm_up()
    observers = (Progress(_Teller()),) if log.isEnabledFor(logging.INFO) else ()
    engine.run(observers if ending is None else (*observers, ending), sink)
    if not sink.breakpoints:
        return _at_limit(engine, IN_MEMORY, check)
    return _given(engine, sink, IN_MEMORY, check)


def _at_limit(engine: Engine, key: str, check: bool) -> Solved:
    """Given lambdas where time ran out before the first was solved: certified at the point that was reached."""
    if engine.task.path.can.finds_lambdas:
        seconds = engine.task.options.max_seconds
        raise ValueError(f"max_seconds: {seconds:g} s were over before the first lambda was solved; give more")
    here, sink = engine.without_steps(), MemorySink()
    here.run(sink=sink)
    reached, status = _given(here, sink, key, check), Status.TIME_LIMIT
    reached.path["status"][:] = reached.path.attrs["status_meanings"].index(status)
    reached.path.attrs["status"] = status.value
    return reached._replace(status=status)


def _given(engine: Engine, sink: MemorySink, key: str, check: bool) -> Solved:
    """The path of a walk that has ended, verified."""
    arrays, attrs = in_memory(engine, sink, key)
    checked = None
    if check:
        asked = _asked(engine.task, key, attrs["status"])
        checked = verify(engine.task.problem, source_in_memory(arrays, attrs), asked=asked, spread=engine.spread)
    return Solved(PathInMemory(arrays, attrs), status_of(attrs["status"], checked), checked, None)


def _asked(task: Task, key: str, status: str) -> Asked:
    """What the path has to be."""
    certainty = certainty_of(task.problem)
    return asked_for(task.path, task.options.method, seed=task.seed, key=key, status=status, certainty=certainty)


def _loaded(folder: Location, key: str, status: Status, task: Task, spread: Spread, check: bool) -> Solved:
    """The path of a folder, verified."""
    asked = _asked(task, key, status.value)
    checked = verify(task.problem, folder, asked=asked, spread=spread) if check else None
    check_path(folder / "path.zarr")
    return Solved(PathInMemory(*read_path(folder / "path.zarr")), status_of(status, checked), checked, None)


def status_of(status: str, checked: Record | None) -> Status:
    """How a solve ended: where it says so, unless the verifier has found that rounding hides a gap."""
    return Status(status if checked is None else checked["verdict"]["status"])


def _ended(signal: int) -> BaseException:
    """The exception of a solve that a signal ended."""
    message = "stopped: what was done is committed, and the same call goes on from there"
    return KeyboardInterrupt(message) if signal == 2 else SystemExit(128 + signal)


def _science(options: MethodOptions, path: PathOptions, seed: int) -> Record:
    """All that determines the numbers, besides the data."""
    solver = {name: value for name, value in dataclasses.asdict(options).items() if name not in UNTIMED}
    walked = {name: value for name, value in dataclasses.asdict(path).items() if (name, value) != ("end", WHOLE)}
    return flat({"solver": solver, "path": walked, "seed": seed})


def _claim(folder: Location, record: Mapping[str, object]) -> None:
    """Write the record of a new folder; ValueError if it belongs to something else."""
    file, here = folder / RECORD, flat(record)
    if not file.is_file():
        others = [path.name for path in folder.iterdir() if path.name != "lock" and not path.name.startswith(".")]
        if others:
            raise ValueError(f"run_dir: {folder} holds {sorted(others)[0]} and no {RECORD}; give a folder of its own")
        write_json(file, record)
        return
    there = flat(read_json(file))
    keys = sorted(key for key in {*there, *here} if there.get(key) != here.get(key))
    pairs = ", ".join(
        f"{key.removeprefix('science.')} {there.get(key)!r} there, {here.get(key)!r} here" for key in keys
    )
    if keys:
        what = "a fit of other data" if "data" in keys else f"another fit ({pairs})"
        raise ValueError(f"run_dir: {folder} holds {what}; give another folder, or remove this one")
