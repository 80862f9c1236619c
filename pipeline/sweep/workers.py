"""The worker processes of a sweep: ordinary runs, one per process at a time, on a dask cluster of one machine or several.

A run has its process for itself, whatever number of threads a worker has: standard error and the log are of the process.

A run goes only to a free worker, so the death of a worker (out of memory, say) ends one run, which is tried once more, on
a new worker, from its last commit. A stop reaches the workers as a message, and each run commits before it ends. Workers
end at once when the main process is killed, because they watch a pipe to it.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omegaconf import OmegaConf

from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Stop
from gapwise.pipeline.run import DONE, INTERRUPTED, run
from gapwise.records import Record
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from distributed import Future

TRIES = 2
"""Workers a run may lose before it counts as failed."""
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Task:
    """One run for a worker."""

    number: int
    config: dict[str, object]
    experiment: str | None
    overrides: tuple[str, ...] = ()
    command: str = ""
    """The sweep's own command, which goes on with this run; a worker's command line would not."""


def run_tasks(
    tasks: Sequence[Task],
    workers: int,
    folder: Location,
    stop: Stop,
    ended: Callable[[int, Record], None],
    waiting_for: Callable[[list[int]], None] = lambda numbers: None,
    compute: ComputeOptions | None = None,
) -> None:
    """Run all tasks, each on one of `workers` processes.

    Parameters
    ----------
    compute : ComputeOptions, optional
        Options of `cluster`; None: processes of this machine.
    folder : Path or UrlPath
        The sweep's, by which workers tell its runs from those of others.
    stop : Stop
        Once a stop is requested, no run begins, and those in progress commit and end.
    ended : callable
        Called with a task's number and its status (done, failed or interrupted), seconds and error.
    waiting_for : callable
        Called several times a second with the numbers of the runs in progress.
    """
    from gapwise.pipeline.compute.cluster import Alone, Cluster  # importing dask takes a second

    with contextlib.closing(
        Cluster(compute or ComputeOptions("processes"), workers, deaths=0, preload=__name__)
    ) as crew:
        if compute is not None:
            crew.prepare()
        client, alone = crew.client, Alone(crew)
        left, tries = deque(tasks), Counter[int]()
        running: dict[Future, Task] = {}
        while running or (left and not stop()):
            size = len(crew.workers())
            free = min(size, workers) - len(running)
            if stop():  # again at every look: a worker may have begun a run since
                client.run(stop_runs, stop.signal, str(folder), on_error="ignore")
            elif left and free > 0:
                task = left.popleft()
                tries[task.number] += 1
                running[client.submit(one_run, task, str(folder), pure=False, retries=0)] = task
                continue
            alone.look()
            waiting_for([task.number for task in running.values()])
            time.sleep(POLL_SECONDS)
            for future in [future for future in running if future.done()]:
                task = running.pop(future)
                outcome = _outcome(future)
                if outcome["status"] in ("died", "interrupted") and not stop() and tries[task.number] < TRIES:
                    left.append(task)
                    continue
                if outcome["status"] in ("died", "interrupted"):
                    outcome["status"] = "interrupted" if stop() else "failed"
                ended(task.number, outcome)


def _outcome(future: Future) -> dict[str, object]:
    if future.status == "finished":
        return dict(future.result())
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        return {"status": "died", "error": f"its worker process died, {TRIES} times (out of memory?)"}
    return {"status": "failed", "error": " ".join(str(error).split()) or type(error).__name__}


def dask_setup(worker: object) -> None:
    """Set up signals; dask calls this in each worker's main thread before the worker takes tasks.

    Ctrl-C reaches the whole process group, and the main process answers it. SIGTERM to one worker ends its run at the
    next commit.
    """
    os.environ["GAPWISE_PRECOMPILE"] = "0"  # the workers share the cores, and the kernels that one of them compiles
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: stop_runs(number))


_alone = threading.Lock()
"""Held by the run that this process is for."""
_sweeps: dict[int, str] = {}
"""The threads of this process that have a run, and its sweep."""


def stop_runs(number: int, sweep: str | None = None) -> None:
    """Stop this process's runs of a sweep, or all of them, as signal `number` would."""
    Stop.asked.update({thread: number for thread, own in [*_sweeps.items()] if sweep in (None, own)})


def one_run(task: Task, sweep: str) -> dict[str, object]:
    """Run one task of a sweep, once this process has no other; returns status, seconds and a one-line error."""
    started = time.monotonic()
    said, thread = io.StringIO(), threading.get_ident()
    _sweeps[thread] = sweep
    try:
        with _alone, contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            code = run(OmegaConf.create(task.config), task.experiment, task.overrides, task.command)
    finally:
        del _sweeps[thread]
        Stop.asked.pop(thread, None)
    facts: dict[str, object] = {"seconds": round(time.monotonic() - started, 3)}
    if code == DONE:
        return {"status": "done", **facts}
    if code >= INTERRUPTED:
        return {"status": "interrupted", "error": f"stopped by {signal.Signals(code - INTERRUPTED).name}", **facts}
    return {"status": "failed", "error": last_error(said.getvalue()) or f"exit code {code}", **facts}


def last_error(said: str) -> str:
    """The last error in a run's stderr, or its last line."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("log: ")]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]
