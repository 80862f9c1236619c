"""Where blocks are computed: serial | threads | processes | cluster | slurm, as plain callables for the stages.

`map_blocks` maps a function over the items of a reader (images, sentences), in order and in bounded windows, on workers
of the chosen kind. `spread` distributes gap passes and similar work over the blocks of a feature store: on threads, by a
few calls of compiled code that releases the GIL; or on other processes that have the store open, for oracles in Python
and for other machines. Results come in order, one entry per block, so no sum depends on the number of workers.

The pool of processes is concurrent.futures' own, with three additions: work of a dead worker is computed again, a stop is
noticed within 0.2 s, and workers end with a main process that was killed. The alternatives are no better: loky's workers
outlive a killed main process, and its pool breaks in the same way when a worker dies; dask's LocalCluster does all three
but takes 4 to 5 times as long to its first result and 8 times as long per task.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, FIRST_EXCEPTION, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from gapwise.pipeline.config.run_options import ComputeOptions, default_workers
from gapwise.pipeline.interrupt import Stop
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from gapwise.pipeline.compute.cluster import Cluster
    from gapwise.stages.problems.parallel import Spread

T = TypeVar("T")
R = TypeVar("R")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WINDOW = 8
"""Items per worker in one window of `map_blocks`, which bounds what is in memory."""

DEATHS = 2
"""How many deaths of worker processes one `map_tasks` survives before it gives up."""

STOP_SECONDS = 0.2
"""Longest wait for results between two checks for a requested stop."""

REMOTE = ("cluster", "slurm")


class WorkersDiedError(RuntimeError):
    """Worker processes died repeatedly on the same work."""


class _Processes(ProcessPoolExecutor):
    """Raises BrokenProcessPool after a death even where concurrent.futures has already closed the pipes to the workers.

    `submit` starts workers, in this thread, while the pool's own thread closes those pipes if one of them died. Until the
    pool says that it is broken, the error is that of a closed pipe: "handle is closed" (OSError), or a ValueError about
    file descriptors from the start of the next worker. Arguments of the task are pickled elsewhere and cannot cause it.
    """

    def submit(self, fn: Callable[..., R], /, *arguments: object, **named: object) -> Future[R]:
        try:
            return super().submit(fn, *arguments, **named)
        except (OSError, ValueError) as error:
            raise BrokenProcessPool(str(error)) from error


class Compute:
    """Context manager; pools start at first use and are gone at exit.

    Parameters
    ----------
    options : ComputeOptions
    stop : Stop, optional
        Once a stop is requested, maps raise Interrupted.
    """

    def __init__(self, options: ComputeOptions, stop: Stop | None = None) -> None:
        self.kind, self._options = options.kind, options
        self.workers = 1 if options.kind == "serial" else (options.workers or default_workers())
        self._stop = stop
        self._threads: ThreadPoolExecutor | None = None
        self._processes: ProcessPoolExecutor | None = None
        self._cluster: Cluster | None = None

    def __enter__(self) -> Compute:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        ended = error is None and not (self._stop is not None and self._stop())
        if not ended:
            self._drop_processes()
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=ended, cancel_futures=True)  # after a stop, threads may be in compiled code
        self._threads = self._processes = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    @property
    def cluster(self) -> Cluster:
        """The workers of `compute=cluster|slurm`, connected to at first use."""
        if self._cluster is None:
            from gapwise.pipeline.compute.cluster import Cluster

            self._cluster = Cluster(self._options, self._stop)
        return self._cluster

    def spread(self, features: Location, folder: Location, python: bool) -> Spread:
        """Ways to spread the blocks of a feature store.

        Parameters
        ----------
        features : Path or UrlPath
            The feature store; workers on other machines open it under the same path.
        folder : Path or UrlPath
            Where w is published for other processes, likewise under the same path.
        python : bool
            Whether the structure's oracle is Python code, which holds the GIL: `compute=processes` then calls it in
            other processes. For compiled oracles it uses threads, which share the arrays.
        """
        from gapwise.pipeline.compute.remote import Sender
        from gapwise.stages.problems.parallel import Spread

        if self.kind in REMOTE:
            self.cluster.prepare(str(features))
        elif not (self.kind == "processes" and python):
            return Spread(self.map_ranges, check=self._check)
        return Spread(self.map_ranges, Sender(self.map_tasks, features, folder), self._check)

    def _check(self) -> None:
        """Raise Interrupted if a stop is requested."""
        if self._stop is not None:
            self._stop.check()

    def map_blocks(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """fn(item) for every item, in order; at most `WINDOW` results per worker exist at a time.

        `fn` and the items must pickle. Under `processes`, `fn` is called again on items whose worker died.
        """
        left, workers = iter(items), self.workers
        if self.kind == "threads":
            yield from self._map_on_threads(fn, left)
            return
        if self.kind in REMOTE:
            self.cluster.prepare()
            workers = self.cluster.threads()
        while window := list(itertools.islice(left, WINDOW * workers)):
            if self._stop is not None:
                self._stop.check()
            if self.kind == "serial":
                for item in window:
                    yield fn(item)
            elif self.kind in REMOTE:
                yield from self.cluster.map(fn, window)
            else:
                yield from self.map_tasks(fn, window)

    def _map_on_threads(self, fn: Callable[[T], R], items: Iterator[T]) -> Iterator[R]:
        """`map_blocks` with a window that moves on with each result, so that no thread waits for the end of a window."""
        pool = self._thread_pool()
        running = deque(pool.submit(fn, item) for item in itertools.islice(items, WINDOW * self.workers))
        try:
            while running:
                if self._stop is not None:
                    self._stop.check()
                yield running.popleft().result()
                running.extend(pool.submit(fn, item) for item in itertools.islice(items, 1))
        finally:
            for future in running:
                future.cancel()

    def map_ranges(self, fn: Callable[[int, int], R], ranges: Sequence[tuple[int, int]]) -> list[R]:
        """fn(start, stop) for every range, in order, on threads of this process.

        `fn` may close over arrays in memory; it should spend its time without the GIL.
        """
        if self.workers == 1 or len(ranges) < 2:
            return [fn(start, stop) for start, stop in ranges]
        pool = self._thread_pool()
        running = [pool.submit(fn, start, stop) for start, stop in ranges]
        try:
            ended, _ = wait(running, return_when=FIRST_EXCEPTION)
            results = {future: future.result() for future in ended}
        finally:
            for future in running:
                future.cancel()
        return [results[future] for future in running]

    def map_tasks(self, fn: Callable[[T], R], items: Sequence[T], places: Sequence[float] | None = None) -> list[R]:
        """fn(item) for every item, in order, in other processes; both must pickle.

        What a process had not returned when it died is computed again elsewhere. `places` are for `Cluster.map`: processes
        of this machine share the pages of mapped files.

        Raises
        ------
        Interrupted
            As soon as a stop is requested.
        WorkersDiedError
            If processes on this machine died more than `DEATHS` times.
        """
        if self.kind in REMOTE:
            return self.cluster.map(fn, items, places)
        results: dict[int, R] = {}
        for _ in range(1 + DEATHS):
            pool, left = self._process_pool(), dict[Future[R], int]()
            with contextlib.suppress(BrokenProcessPool):  # a worker that died while the others were being started
                for k in range(len(items)):
                    if k not in results:
                        left[pool.submit(fn, items[k])] = k
            if self._collect(left, results) and len(results) == len(items):
                return [results[k] for k in range(len(items))]
            self._drop_processes()
        raise WorkersDiedError(
            f"compute: workers died {1 + DEATHS} times on the same work (out of memory?); try fewer with compute.workers=, "
            "or compute=serial to see the error; what was committed is kept"
        )

    def _collect(self, left: dict[Future[R], int], results: dict[int, R]) -> bool:
        """Put results into `results` by number as they come; returns False if a process died."""
        waiting, whole = set(left), True
        try:
            while waiting:
                if self._stop is not None:
                    self._stop.check()
                ended, waiting = wait(waiting, timeout=STOP_SECONDS, return_when=FIRST_COMPLETED)
                for future in ended:
                    try:
                        results[left[future]] = future.result()
                    except BrokenProcessPool:
                        whole = False
        finally:
            for future in waiting:
                future.cancel()
        return whole

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="gapwise")
        return self._threads

    def _process_pool(self) -> ProcessPoolExecutor:
        if self._processes is None:
            context = multiprocessing.get_context("spawn")
            self._processes = _Processes(self.workers, mp_context=context, initializer=start_worker)
        return self._processes

    def _drop_processes(self) -> None:
        """Give up a broken pool and kill its processes.

        concurrent.futures does not tell a process that was starting when the pool broke to end, and would wait for it
        at exit for ever.
        """
        pool, self._processes = self._processes, None
        # Python 3.11 gives each unfinished future the error of a broken pool, and fails in its thread at a cancelled one.
        pending = getattr(pool, "_pending_work_items", None) or {}
        for item in list(pending.values()):
            if item.future.cancelled():
                item.future = Future()
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            with contextlib.suppress(ValueError):  # closed already
                process.kill()


def pin_threads() -> None:
    """One thread for BLAS, OpenMP, OpenCV and numba, here and in processes started from here; call before numpy loads.

    Parallelism is over blocks, and with one thread per block no sum depends on the number of cores.
    """
    for name in THREADS:
        os.environ[name] = "1"
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"


def start_worker() -> None:
    """Set up a worker process: one thread, Ctrl-C ignored, and an end when the main process ends.

    Ctrl-C reaches the whole process group and is left to the main process. A main process that was killed cannot shut
    its pool down, and idle workers keep each other's pipes open, so a thread of the worker waits for its end.
    """
    pin_threads()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
