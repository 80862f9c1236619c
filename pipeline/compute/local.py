"""Where blocks are computed: serial | threads | processes | cluster, as plain callables for the stages.

`map_blocks` maps a function over the items of a reader (images, sentences), in order and in bounded windows, on workers
of the chosen kind. `spread` distributes gap passes and similar work over the blocks of a feature store: on threads, by a
few calls of compiled code that releases the GIL; or on other processes that have the store open, for oracles in Python
and for other machines (`cluster`). Results come in order, one entry per block, so no sum depends on the number of workers.
"""

from __future__ import annotations

import itertools
import os
import re
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, TrackingOptions, default_workers
from gapwise.pipeline.interrupt import Stop
from gapwise.storage.backend import Location

if TYPE_CHECKING:
    from gapwise.pipeline.compute.cluster import Cluster
    from gapwise.stages.problems.parallel import Spread

T = TypeVar("T")
R = TypeVar("R")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ANSWER_SECONDS = 4.0
"""How long a scheduler may take to accept a connection."""
WINDOW = 8
"""Items per worker in one window of `map_blocks`, which bounds what is in memory."""


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
        self._cluster: Cluster | None = None

    def __enter__(self) -> Compute:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        ended = error is None and not (self._stop is not None and self._stop())
        if self._threads is not None:
            self._threads.shutdown(wait=ended, cancel_futures=True)  # after a stop, threads may be in compiled code
            self._threads = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    @property
    def cluster(self) -> Cluster:
        """The workers of `compute=processes|cluster`, started or connected to at first use."""
        if self._cluster is None:
            from gapwise.pipeline.compute.cluster import Cluster

            self._cluster = Cluster(self._options, self.workers, self._stop)
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

        if self.kind == "cluster":
            self.cluster.prepare(str(features))
        elif not (self.kind == "processes" and python):
            return Spread(self.map_ranges, check=self._check)
        return Spread(self.map_ranges, Sender(self.cluster.map, features, folder), self._check)

    def _check(self) -> None:
        """Raise Interrupted if a stop is requested."""
        if self._stop is not None:
            self._stop.check()

    def map_blocks(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """fn(item) for every item, in order; at most `WINDOW` results per worker exist at a time.

        In other processes `fn` and the items must pickle, and `fn` is called again on items whose worker died.
        """
        left, workers = iter(items), self.workers
        if self.kind == "threads":
            yield from self._map_on_threads(fn, left)
            return
        if self.kind == "cluster":
            self.cluster.prepare()
            workers = self.cluster.threads()
        while window := list(itertools.islice(left, WINDOW * workers)):
            if self._stop is not None:
                self._stop.check()
            if self.kind == "serial":
                for item in window:
                    yield fn(item)
            else:
                yield from self.cluster.map(fn, window)

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

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.workers, thread_name_prefix="gapwise")
        return self._threads


def pin_threads() -> None:
    """One thread for BLAS, OpenMP, OpenCV and numba, here and in processes started from here; call before numpy loads.

    Parallelism is over blocks, and with one thread per block no sum depends on the number of cores.
    """
    for name in THREADS:
        os.environ[name] = "1"
    os.environ["OPENCV_FOR_THREADS_NUM"] = "1"


# -- checked before a run writes anything ---------------------------------------------------------------------------------
def check_packages(tracking: TrackingOptions) -> None:
    """Raise ConfigError, which says what to install, if a choice needs a package that is not there."""
    if tracking.kind == "mlflow" and find_spec("mlflow") is None:
        raise ConfigError("tracking=mlflow: mlflow is not installed; pip install mlflow, or choose tracking=none")


def check_scheduler(compute: ComputeOptions) -> None:
    """Raise OSError if nothing accepts connections at `compute.address` (of compute=cluster)."""
    match = re.fullmatch(r"(?:tcp|tls|ws|wss)://(.+):(\d+)/?", compute.address or "")
    if compute.kind != "cluster" or match is None:
        return
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise OSError(
            f"compute.address: no scheduler answers at {compute.address} ({error}); start one with `dask scheduler` and "
            "give the address it prints"
        ) from None
