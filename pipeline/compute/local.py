"""Where blocks are computed: serial | threads | processes | cluster | slurm (DESIGN 4), as plain callables for the stages.

`map_blocks` maps over items that a reader works through (images, sentences), in order and in bounded windows, by workers
of the chosen kind. `spread` is how gap passes and the like go over the blocks of a feature store: over dask's threads,
few calls of compiled code that releases the GIL; or over other processes that have the store open, for oracles in Python
and for other machines. Results come in order and are one entry a block, so no sum depends on the number of workers.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.config.run_options import ComputeOptions, default_workers
from pipeline.interrupt import Stop
from storage.places import Place

if TYPE_CHECKING:
    from pipeline.compute.cluster import Cluster
    from stages.parallel import Spread

T = TypeVar("T")
R = TypeVar("R")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
WINDOW = 8
"""Items a worker in one window of `map_blocks`: what is in memory at a time."""

DEATHS = 2
"""Times that processes of this machine may die in one `map_tasks` before it gives up."""

REMOTE = ("cluster", "slurm")


class WorkersDiedError(RuntimeError):
    """Worker processes that ended on the same work again and again."""


class _Processes(ProcessPoolExecutor):
    """Says of a pool that a death has broken that it is broken, whatever of it the death has closed by then."""

    def submit(self, fn: Callable[..., R], /, *arguments: Any, **named: Any) -> Future[R]:
        try:
            return super().submit(fn, *arguments, **named)
        except OSError as error:  # "handle is closed": between a death and the pool's notice of it
            raise BrokenProcessPool(str(error)) from error


class Compute:
    """Context manager; pools start at first use and are gone at exit.

    Parameters
    ----------
    options : ComputeOptions
    stop : Stop, optional
        Looked at between windows: `map_blocks` raises Interrupted.
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
        for pool in (self._threads, self._processes):
            if pool is not None:
                pool.shutdown(wait=error is None, cancel_futures=True)
        self._threads = self._processes = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    @property
    def cluster(self) -> Cluster:
        """The workers of `compute=cluster|slurm`, asked for when they are first needed."""
        if self._cluster is None:
            from pipeline.compute.cluster import Cluster

            self._cluster = Cluster(self._options, self._stop)
        return self._cluster

    def spread(self, features: Place, folder: Place, python: bool) -> Spread:
        """Ways to spread the blocks of a feature store.

        Parameters
        ----------
        features : Path or ObjectPlace
            The feature store; workers on other machines open it by this very path.
        folder : Path or ObjectPlace
            Where w is published for other processes; the same holds for it.
        python : bool
            Whether the structure's oracle is Python code, which holds the GIL: `processes` then calls it in
            processes. Compiled oracles need no more than threads, where the arrays are.
        """
        from pipeline.compute.remote import Sender
        from stages.parallel import Spread

        if self.kind in REMOTE:
            self.cluster.prepare(str(features))
        elif not (self.kind == "processes" and python):
            return Spread(self.map_ranges)
        return Spread(self.map_ranges, Sender(self.map_tasks, features, folder))

    def map_blocks(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """fn(item) for every item, in order; at most `WINDOW` results a worker exist at a time.

        `fn` and the items must pickle. Under `processes` a window whose worker died is tried once more in fresh
        processes (fn must not mind being called twice); WorkersDiedError if that dies as well.
        """
        left, workers = iter(items), self.workers
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
                yield from self._window(fn, window)

    def map_ranges(self, fn: Callable[[int, int], R], ranges: Sequence[tuple[int, int]]) -> list[R]:
        """fn(start, stop) for every range, in order, on threads of this process.

        `fn` may close over arrays in memory; it should spend its time without the GIL.
        """
        if self.workers == 1 or len(ranges) < 2:
            return [fn(start, stop) for start, stop in ranges]
        from dask.threaded import get

        # a plain graph: a third of the time that delayed calls take
        graph = {f"range-{k}": (fn, start, stop) for k, (start, stop) in enumerate(ranges)}
        return list(get(graph, list(graph), pool=self._thread_pool()))

    def map_tasks(self, fn: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """fn(item) for every item, in order, in other processes; both must pickle.

        What a process that died had not returned is computed again elsewhere. Raises Interrupted in the middle when a
        stop is asked for, and WorkersDiedError when processes of this machine die again and again.
        """
        if self.kind in REMOTE:
            return self.cluster.map(fn, items)
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
            f"compute: workers died {1 + DEATHS} times in one pass (out of memory?); try fewer with compute.workers=; "
            "what was committed is kept"
        )

    def _collect(self, left: dict[Future[Any], int], results: dict[int, Any]) -> bool:
        """Results by number as they come; False if a process died, with those of the others in."""
        waiting, whole = set(left), True
        try:
            while waiting:
                if self._stop is not None:
                    self._stop.check()
                ended, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in ended:
                    try:
                        results[left[future]] = future.result()
                    except BrokenProcessPool:
                        whole = False
        finally:
            for future in waiting:
                future.cancel()
        return whole

    def _window(self, fn: Callable[[T], R], window: list[T]) -> list[R]:
        for attempt in (1, 2):
            try:
                return self._compute(fn, window)
            except BrokenProcessPool:
                self._drop_processes()
                if attempt == 2:
                    raise WorkersDiedError(
                        f"compute: workers died twice on the same {len(window)} items (out of memory?); "
                        "try fewer with compute.workers=, or compute=serial to see the error"
                    ) from None
        raise AssertionError

    def _compute(self, fn: Callable[[T], R], window: list[T]) -> list[R]:
        import dask

        pool: Executor = self._thread_pool() if self.kind == "threads" else self._process_pool()
        task = dask.delayed(fn, pure=False, traverse=False)
        calls = [task(dask.delayed(item, traverse=False, pure=False)) for item in window]
        return list(dask.compute(*calls, scheduler=self.kind, pool=pool, num_workers=self.workers, chunksize=1))

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="gapwise")
        return self._threads

    def _process_pool(self) -> ProcessPoolExecutor:
        if self._processes is None:
            context = multiprocessing.get_context("spawn")
            self._processes = _Processes(self.workers, mp_context=context, initializer=_start_worker)
        return self._processes

    def _drop_processes(self) -> None:
        """Give up a broken pool and end its processes: one that was being started when it broke is not told to end by
        concurrent.futures, which would wait for it at exit for ever."""
        pool, self._processes = self._processes, None
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            with contextlib.suppress(ValueError):  # closed already
                process.kill()


def pin_threads() -> None:
    """One thread for BLAS, OpenMP, OpenCV and numba, here and in processes started from here; call before numpy loads.

    Blocks are the unit of parallelism, and sums then do not depend on the number of cores.
    """
    for name in THREADS:
        os.environ[name] = "1"
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"


def _start_worker() -> None:
    """A worker process ends with the main process, and only then.

    Ctrl-C reaches the whole process group and is the main process's business. A main process that was killed cannot
    shut its pool down, and idle workers hold each other's pipe open: so a thread waits for it and ends them.
    """
    pin_threads()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
