"""Workers on other machines: those of a running dask scheduler, or of one that starts workers in Slurm jobs.

Tasks name functions and files, and carry no arrays, so another worker can repeat the task of one that died. Only results
bring arrays back.
`pure=False` everywhere: otherwise dask would return the results of the previous gap pass for the next.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Generic, TypeVar

import dask
from distributed import Client, Future, WorkerPlugin, as_completed
from distributed.core import PooledRPCCall, rpc
from distributed.scheduler import KilledWorker

from gapwise.pipeline.compute.homes import Homes
from gapwise.pipeline.compute.ready import check_scheduler
from gapwise.pipeline.compute.remote import MUST_AGREE, WorkerError, facts, opened
from gapwise.pipeline.config.run_options import ComputeOptions
from gapwise.pipeline.interrupt import Stop

T = TypeVar("T")
R = TypeVar("R")
log = logging.getLogger("gapwise.compute")

SHORT, LONG = 0.0005, 0.02
"""Seconds between two checks for finished tasks: the pause after some have finished, and the longest while none do."""

LOOK = 1.0
"""Seconds between two requests to the scheduler for its list of workers."""

CONNECT_SECONDS = 10

AHEAD = 2
"""Tasks for each thread of a worker that are sent at a time, of those that belong to it: one to work on, and the next."""

DEATHS = 3
"""Workers that may die of a part of a pass before it counts as the cause, as many as the scheduler allows by default."""


DIED = "compute: the workers of one part died one after another, {} the last (out of memory?); see their logs"


class KeepsOpen(WorkerPlugin):
    """Opens the training problem on a worker before its first task; releases it at the end."""

    def __init__(self, features: str) -> None:
        self.features = features

    def setup(self, worker: object) -> None:
        opened(self.features, "train")

    def teardown(self, worker: object) -> None:
        opened.cache_clear()


class Cluster:
    """Ordered maps over the workers of a scheduler, which survive the death of any worker."""

    def __init__(self, options: ComputeOptions, stop: Stop | None = None) -> None:
        self.options, self._stop = options, stop
        self._exit = contextlib.ExitStack()
        self._ready: set[str | None] = set()
        self.homes = Homes()
        self.client = self._connect()

    def close(self) -> None:
        """Disconnect, leaving the scheduler as it was before."""
        self._exit.close()

    def _connect(self) -> Client:
        if self.options.kind == "slurm":
            from gapwise.pipeline.compute.slurm import started

            scheduler: object = self._exit.enter_context(started(self.options))
        else:
            scheduler = self.options.address
            check_scheduler(self.options)
        try:
            with dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s"}):
                client = Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
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
        """Number of threads of all present workers; at least 1."""
        return max(self.present(), 1)

    def present(self) -> int:
        """Number of threads of all present workers. WorkerError if the scheduler is gone."""
        self._alive()
        return sum(self._workers().values())

    def processes(self) -> int:
        """Number of present workers. WorkerError if the scheduler is gone."""
        self._alive()
        return len(self._workers())

    def _workers(self) -> Mapping[str, int]:
        try:
            return dict(self.client.sync(self._scheduler.ncores, callback_timeout=CONNECT_SECONDS))
        except (OSError, TimeoutError):
            self._alive()
            return {}

    def prepare(self, features: str | None = None) -> None:
        """Check every present worker and open `features` there; workers that join later open them too.

        Raises
        ------
        WorkerError
            If workers lack Gapwise, run other versions, or cannot read the features; names them.
        """
        if features in self._ready:
            return
        wrong = self._wrong(features)
        if wrong:
            number = len(self._workers())
            raise WorkerError(f"compute: {len(wrong)} of {number} workers cannot be used: {'; '.join(wrong)}")
        if features is not None:
            name = f"gapwise-{features}"
            self.client.register_plugin(KeepsOpen(features), name=name)
            self._exit.callback(self._forget, name)
        self._ready.add(features)

    def _forget(self, name: str) -> None:
        with contextlib.suppress(Exception):  # nothing to undo if the scheduler is gone
            self.client.unregister_worker_plugin(name)

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
        """fn(item) for every item, in order, each on any worker, or on the one that owns its place (`Homes`).

        Raises
        ------
        WorkerError
            If there has been no worker for `wait_seconds`, the scheduler is gone, or the workers of one task died
            repeatedly. Errors of `fn` are passed on.
        Interrupted
            If a stop was requested.
        """
        results: dict[int, R] = {}
        work, watch, pause = _Work(self, fn, items, places), _Watch(self), SHORT
        try:
            while len(results) < len(items):
                work.send()
                batch = work.ended.next_batch(block=False)
                for future, value in batch:
                    if future.key in work.running:  # else it was taken back
                        self._check(future, value)
                        results[work.number_of(future)] = value
                    future.release()
                if watch.look():
                    work.divide()
                pause = SHORT if batch else min(2.0 * pause, LONG)
                time.sleep(pause)
        finally:
            if work.running and self.client.status == "running":
                self.client.cancel([future for future, _, _ in work.running.values()], force=True)
        return [results[k] for k in range(len(items))]

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
            raise WorkerError(DIED.format(error.last_worker.address))
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


class _Work(Generic[T, R]):
    """The tasks of one map: those that are sent, and those that wait for the worker to which they belong."""

    def __init__(
        self, cluster: Cluster, fn: Callable[[T], R], items: Sequence[T], places: Sequence[float] | None
    ) -> None:
        self.cluster, self.fn, self.items, self.places = cluster, fn, items, places
        self.ended = as_completed(loop=cluster.client.loop, with_results=True, raise_errors=False)
        self.running: dict[object, tuple[Future, int, str | None]] = {}
        """By their keys: tasks that were sent, the numbers of their items and the workers to which they belong."""
        self.waiting: dict[str | None, deque[int]] = {None: deque(range(len(items)))}
        self.threads: Mapping[str, int] = {}
        self.deaths: Counter[int] = Counter()
        self.divide()

    def divide(self) -> None:
        """Divide what waits, and what dead workers had, among the workers that are there, in order.

        WorkerError if too many workers died of the same part.
        """
        if self.places is None:
            return
        self.threads = self.cluster._workers()
        if not self.threads:  # or the scheduler did not answer; then nobody is known to be gone
            return
        self.cluster.homes.update(self.threads)
        left = sorted([*self._taken_back(), *(k for queue in self.waiting.values() for k in queue)])
        self.waiting = {}
        for k in left:
            self.waiting.setdefault(self.cluster.homes.of(self.places[k]), deque()).append(k)

    def _taken_back(self) -> list[int]:
        """Tasks that were sent to workers that are gone. (The scheduler would keep them until these return.)"""
        lost = [entry for entry in self.running.values() if entry[2] is not None and entry[2] not in self.threads]
        for future, k, worker in lost:
            del self.running[future.key]
            self.deaths[k] += 1
            if self.deaths[k] > DEATHS:
                raise WorkerError(DIED.format(worker))
        if lost:
            self.cluster.client.cancel([future for future, _, _ in lost], force=True)
        return [k for _, k, _ in lost]

    def send(self) -> None:
        """Send everything, or to each worker as much as it is to have."""
        client, has = self.cluster.client, Counter(worker for _, _, worker in self.running.values())
        for worker, queue in self.waiting.items():
            room = len(queue) if worker is None else min(len(queue), AHEAD * self.threads.get(worker, 0) - has[worker])
            numbers = [queue.popleft() for _ in range(room)]
            given, own = [self.items[k] for k in numbers], None if worker is None else [worker]
            futures = client.map(self.fn, given, pure=False, retries=0, batch_size=None, workers=own) if numbers else []
            for k, future in zip(numbers, futures, strict=True):
                self.running[future.key] = future, k, worker
            self.ended.update(futures)

    def number_of(self, future: Future) -> int:
        """The number of a task that has ended."""
        return self.running.pop(future.key)[1]


class _Watch:
    """Checks to make while waiting for tasks: stop requested, scheduler gone, too long without a worker."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.looked = time.monotonic()
        self.alone_since: float | None = None

    def look(self) -> bool:
        """Whether the workers were looked up."""
        cluster, limit = self.cluster, self.cluster.options.wait_seconds
        if cluster._stop is not None:
            cluster._stop.check()
        now = time.monotonic()
        if now - self.looked < LOOK:
            return False
        self.looked = now
        cluster._alive()
        if cluster._workers():
            if self.alone_since is not None:
                log.warning("compute: a worker has joined, going on")
            self.alone_since = None
        elif self.alone_since is None:
            self.alone_since = now
            log.warning("compute: no worker is left at %s; waiting %g s for one", cluster.where, limit)
        elif now - self.alone_since >= limit:
            raise WorkerError(
                f"compute: no worker at {cluster.where} for {limit:g} s (compute.wait_seconds); what was committed is "
                f"kept: start workers with `dask worker {cluster.where}` and give the same command"
            )
        return True
