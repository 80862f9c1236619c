"""Work in other processes: those of a running dask scheduler, or of one that this process starts on its machine.

Tasks name functions and files, and carry no arrays, so another worker can repeat the task of one that died: dask sends it
there. Only results bring arrays back.
`pure=False` everywhere: otherwise dask would return the results of the previous gap pass for the next.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import math
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TypeVar

import dask
from distributed import Client, Future, LocalCluster, as_completed
from distributed.core import PooledRPCCall, rpc
from distributed.scheduler import KilledWorker

from gapwise.pipeline.compute.local import check_scheduler, pin_threads
from gapwise.pipeline.compute.remote import MUST_AGREE, WorkerError, facts, opened
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Stop

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger("gapwise.compute")

PAUSE = 0.002
"""Seconds between two looks for results and for a requested stop."""

CONNECT_SECONDS = 10

PARTS = 8
"""Tasks of one map for each thread of the workers: dask takes 2 ms for a task."""

DEATHS = 3
"""Workers that may die of one task before it counts as the cause, as many as a scheduler allows by default."""


def each(fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """fn(item) for every item, on a worker."""
    return [fn(item) for item in items]


class Cluster:
    """Ordered maps over the workers of a scheduler, which survive the death of any worker.

    Parameters
    ----------
    options : ComputeOptions
        Kind `processes` starts workers on this machine, which end with this process; `cluster` uses those at `address`.
    workers : int
        How many `processes` starts.
    stop : Stop, optional
        Once a stop is requested, maps raise Interrupted.
    deaths, preload
        Of `local_cluster`.
    """

    def __init__(
        self,
        options: ComputeOptions,
        workers: int = 1,
        stop: Stop | None = None,
        deaths: int = DEATHS,
        preload: str = __name__,
    ) -> None:
        self.options, self._stop = options, stop
        self._exit = contextlib.ExitStack()
        self._ready: set[str | None] = set()
        if options.kind == "processes":
            self.client = self._exit.enter_context(local_cluster(workers, deaths, preload))
        else:
            self.client = self._connect()

    def close(self) -> None:
        """Disconnect, leaving the scheduler and its workers as they were before."""
        with contextlib.suppress(Exception):  # nothing to undo if the scheduler is gone
            self.client.run(opened.cache_clear, wait=False)
        self._exit.close()

    def _connect(self) -> Client:
        check_scheduler(self.options)
        try:
            with dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"}):
                client = Client(self.options.address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise WorkerError(
                f"compute.address: no scheduler answers at {self.options.address} within {CONNECT_SECONDS} s "
                f"({type(error).__name__}); start one with `dask scheduler` and give the address it prints"
            ) from None
        return self._exit.enter_context(client)

    @property
    def where(self) -> str:
        """The scheduler's address."""
        return str(self._scheduler.address)

    @property
    def _scheduler(self) -> PooledRPCCall | rpc:
        scheduler = self.client.scheduler
        assert scheduler is not None  # `_connect` waits for it
        return scheduler

    def threads(self) -> int:
        """Number of threads of all present workers; at least 1. WorkerError if the scheduler is gone."""
        return max(sum(self.workers().values()), 1)

    def workers(self) -> Mapping[str, int]:
        """Threads of each present worker, by address; none if the scheduler does not answer in time."""
        self._alive()
        try:
            return dict(self.client.sync(self._scheduler.ncores, callback_timeout=CONNECT_SECONDS))
        except OSError:  # TimeoutError is one
            self._alive()
            return {}

    def prepare(self, features: str | None = None) -> None:
        """Check every present worker and open `features` there; workers that join later do so at their first task.

        Raises
        ------
        WorkerError
            If workers lack Gapwise, run other versions, or cannot read the features; names them.
        """
        if features in self._ready:
            return
        wrong = self._wrong(features)
        if wrong:
            number = len(self.workers())
            raise WorkerError(f"compute: {len(wrong)} of {number} workers cannot be used: {'; '.join(wrong)}")
        self._ready.add(features)

    def _wrong(self, features: str | None) -> list[str]:
        wrong = []
        for worker, spec in self.client.run(importlib.util.find_spec, "gapwise.stages", on_error="return").items():
            if spec is None or isinstance(spec, BaseException):
                wrong.append(f"{worker} cannot import Gapwise (pip install it there, or set PYTHONPATH for the worker)")
        if wrong:
            return wrong
        ours = facts()
        for worker, theirs in self.client.run(facts, features, on_error="return").items():
            if isinstance(theirs, BaseException):
                wrong.append(f"{worker}: {type(theirs).__name__}: {theirs}")
                continue
            other = [f"{name} {theirs[name]} (here {ours[name]})" for name in MUST_AGREE if theirs[name] != ours[name]]
            if other:
                alike = theirs["processor"] == ours["processor"]
                hint = "" if alike else "; NUMBA_CPU_NAME=generic everywhere makes different processors equivalent"
                wrong.append(
                    f"{worker} has {', '.join(other)}: install the same versions and restart it, with the same "
                    f"$GAPWISE_PARTS if there is one{hint}"
                )
            elif "features" in theirs:
                wrong.append(f"{worker}: {theirs['features']}")
        return wrong

    def map(self, fn: Callable[[T], R], items: Sequence[T], places: Sequence[float] | None = None) -> list[R]:
        """fn(item) for every item, in order, on any worker. What a worker had not returned when it died is done again.

        Parameters
        ----------
        places : sequence of float in [0, 1), optional
            While the workers are the same, items of the same place go to the same one, which has read their features.

        Raises
        ------
        WorkerError
            If there has been no worker for `wait_seconds`, the scheduler is gone, or the workers of one task died
            repeatedly. Errors of `fn` are passed on.
        Interrupted
            If a stop was requested.
        """
        futures = self._sent(fn, items, places)
        number = {future.key: k for k, future in enumerate(futures)}
        ended = as_completed(futures, loop=self.client.loop, with_results=True, raise_errors=False)
        results: dict[int, list[R]] = {}
        alone = Alone(self)
        try:
            while len(results) < len(futures):
                for future, value in ended.next_batch(block=False):
                    self._check(future, value)
                    results[number[future.key]] = value
                    future.release()
                if self._stop is not None:
                    self._stop.check()
                alone.look()
                time.sleep(PAUSE)
        finally:
            if self.client.status == "running":
                self.client.cancel([future for k, future in enumerate(futures) if k not in results], force=True)
        return [result for k in range(len(futures)) for result in results[k]]

    def _sent(self, fn: Callable[[T], R], items: Sequence[T], places: Sequence[float] | None) -> list[Future]:
        """A task for every few items in a row, in order."""
        workers = self.workers()
        size = math.ceil(len(items) / (PARTS * max(sum(workers.values()), 1))) or 1
        homes, tasks = sorted(workers), []
        for start in range(0, len(items), size):
            home = [homes[int(places[start] * len(homes))]] if places is not None and homes else None
            part = items[start : start + size]
            tasks.append(
                self.client.submit(each, fn, part, pure=False, workers=home, allow_other_workers=home is not None)
            )
        return tasks

    def _check(self, future: Future, value: object) -> None:
        """Raise the error that a task ended with, if any."""
        if isinstance(value, CancelledError):
            self._alive()
            raise WorkerError(f"compute: the scheduler at {self.where} dropped the work; does another program use it?")
        if future.status != "error":
            return
        assert isinstance(value, tuple)  # type and error, of `as_completed`
        error = value[1]
        if isinstance(error, KilledWorker):
            raise WorkerError(
                f"compute: the workers of one part died one after another, {error.last_worker.address} the last (out of "
                "memory?); try fewer, or compute=serial to see the error; what was committed is kept"
            )
        if isinstance(error, ModuleNotFoundError):
            raise WorkerError(
                f"compute: a worker cannot import {error.name!r}: install it there, or set PYTHONPATH for the worker"
            )
        raise error

    def _alive(self) -> None:
        if self.client.status != "running":
            raise WorkerError(
                f"compute: the scheduler at {self.options.address or 'this machine'} is gone; what was committed is kept; "
                "start the scheduler again and repeat the command"
            )


class Alone:
    """How long there has been no worker. (Dask would wait for one for ever.)"""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.looked = time.monotonic()
        self.since: float | None = None

    def look(self) -> None:
        """Look for workers, once a second; WorkerError if there has been none for `compute.wait_seconds`."""
        now, cluster, limit = time.monotonic(), self.cluster, self.cluster.options.wait_seconds
        if now - self.looked < 1.0:
            return
        self.looked = now
        if cluster.workers():
            self.since = None
        elif self.since is None:
            self.since = now
            log.warning("compute: no worker is left at %s; waiting %g s for one", cluster.where, limit)
        elif now - self.since >= limit:
            raise WorkerError(
                f"compute: no worker at {cluster.where} for {limit:g} s (compute.wait_seconds); what was committed is "
                f"kept: start workers with `dask worker {cluster.where}` and give the same command"
            )


@contextlib.contextmanager
def local_cluster(workers: int, deaths: int, preload: str) -> Iterator[Client]:
    """A client of a dask cluster on this machine. Leaves no process behind: those that do not end are killed.

    Parameters
    ----------
    deaths : int
        Workers that may die of one task.
    preload : str
        The module whose `dask_setup` prepares each worker.
    """
    pin_threads()  # before the workers start: they inherit it, and numba and BLAS read it when they are loaded
    settings = {
        "distributed.scheduler.allowed-failures": deaths,
        "distributed.scheduler.worker-ttl": None,  # a worker may be silent for long in compiled code
        "distributed.worker.daemon": False,  # an oracle may start processes of its own
        "distributed.admin.tick.limit": "10m",
        "distributed.comm.timeouts.tcp": "300s",
    }
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address="127.0.0.1:0",
            local_directory=scratch, silence_logs=50, preload=[preload],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C, which reaches the whole process group and is answered by the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
