"""Compiles what later stages call while the first stages work, in one process: features need the other core.

numba keeps what they compile on disk, where this process finds it; a mark beside it says which settings are done. A
process that fails costs nothing but its time: what it did not compile is compiled when it is needed.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from gapwise.pipeline.compiling import WHAT
from gapwise.pipeline.compute.local import pin_threads
from gapwise.pipeline.config.run_options import default_workers
from gapwise.records import Facts

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.interrupt import Stop
    from gapwise.pipeline.progress import Progress
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.options import MethodOptions, PathOptions

STAGES = ("init_path", "solve", "verify", "evaluate")
"""The stages whose functions are compiled, in this order: what they share once, and the last while the path is solved."""

ROOMS = ("problems", "solver", "certify")
"""Packages of `stages` with compiled code, besides evaluate.py."""


class Precompile:
    """Context manager: a process runs `target` to compile for `settings`, unless that was done before.

    Attributes
    ----------
    seconds : float
        Seconds for which `wait_for` has waited.
    """

    def __init__(
        self, settings: Settings, progress: Progress, stop: Stop, target: Callable[..., None] | None = None
    ) -> None:
        self.seconds = 0.0
        self._progress, self._stop = progress, stop
        self._process: SpawnProcess | None = None
        self._left: set[str] = set()  # stages for which it compiles still
        self._mark = mark_of(settings) if worthwhile(settings) else None
        if self._mark is None or self._mark.exists():
            return
        context = multiprocessing.get_context("spawn")
        self._heard, said = context.Pipe(duplex=False)
        arguments = dict(settings.dataset), settings.solver, settings.path, said
        process = context.Process(target=target or compile_all, args=arguments, daemon=True)
        with contextlib.suppress(OSError):  # no more processes, memory or files: nothing is compiled ahead
            process.start()
            self._process, self._left = process, {*STAGES}
        said.close()

    def __enter__(self) -> Precompile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._heard.close()

    def wait_for(self, stage: str) -> None:
        """Wait until the functions of `stage` are compiled, or nobody compiles them; Interrupted if a stop is requested."""
        began = time.monotonic()
        self._hear(0.0)
        while stage in self._left:
            self._stop.check()
            self._progress.report(0, 0, WHAT)
            self._hear(0.2)
        self.seconds += time.monotonic() - began

    def _hear(self, timeout: float) -> None:
        """Note which stages are ready; a process that ends closes its connection."""
        try:
            while self._left and self._heard.poll(timeout):
                self._left.remove(self._heard.recv())
                timeout = 0.0
                if not self._left and self._mark is not None:
                    with contextlib.suppress(OSError):
                        self._mark.touch()
        except (EOFError, OSError):
            self._left.clear()


def worthwhile(settings: Settings) -> bool:
    """Whether there is a second core, all stages follow, and the data set says before it is read what to compile for.

    Never in a worker of a sweep, which may not start processes.
    """
    from gapwise.stages.datasets import Reader, reader_of

    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" or os.environ.get("GAPWISE_PRECOMPILE") == "0":
        return False
    if settings.run.managed or settings.compute.kind == "serial":
        return False
    own = reader_of(settings.dataset["name"]).specimen is not Reader.specimen
    return default_workers() > 1 and settings.run.until is None and own


def mark_of(settings: Settings) -> Path | None:
    """The file that says that everything is compiled for `settings`, in numba's cache; None if numba keeps it elsewhere."""
    from gapwise import parts, stages
    from gapwise.stages.problems import kernel_cache

    package = Path(stages.__path__[0])
    folder = kernel_cache.folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    files = [package / "evaluate.py", *(file for room in ROOMS for file in (package / room).rglob("*.py"))]
    sources = {file.relative_to(package).as_posix(): file for file in files}
    own = parts.sources(*(f"gapwise.stages.{room}" for room in ROOMS))
    sources |= {f"{parts.VARIABLE}/{name}": file for name, file in own.items()}
    machine = (sys.version, version("numba"), version("llvmlite"), platform.node(), os.environ.get("NUMBA_CPU_NAME"))
    chosen = [choices(part) for part in (settings.dataset, asdict(settings.solver), asdict(settings.path))]
    return folder / f"compiled-{parts.digest_of(sources, repr((machine, chosen)))[:16]}"


def choices(options: Facts) -> list[object]:
    """The options that may decide which functions are called: words and switches, but no number."""
    pairs: list[object] = []
    for name, value in sorted(options.items()):
        if isinstance(value, Mapping):
            pairs.append((name, choices(value)))
        elif value is None or isinstance(value, str | bool):
            pairs.append((name, value))
    return pairs


def compile_all(
    dataset: Mapping[str, object], options: MethodOptions, path: PathOptions, said: Connection
) -> None:  # pragma: no cover  (in a process of its own)
    """Compile what each stage calls, and say its name when that is done; the target of the process."""
    from gapwise.stages.datasets import specimen
    from gapwise.stages.problems import build

    pin_threads()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole process group, and the main process answers it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.disable()  # numba makes many objects that stay: looking for garbage among them took a seventh of the time
    with contextlib.suppress(Exception), said:
        example = specimen(dataset)
        problem = build(example.structure, example.arrays, example.meta)
        for stage in STAGES:
            warm_up(stage, problem, options, path)
            said.send(stage)


def _end_with_parent() -> None:
    """A main process that was killed cannot end this one."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def warm_up(stage: str, problem: Problem, options: MethodOptions, path: PathOptions) -> None:
    """Compile or load what a stage calls."""
    if stage == "init_path":
        from gapwise.stages.init_path import init_path

        init_path(problem, path)
    elif stage == "solve":
        from gapwise.stages.init_path import init_path
        from gapwise.stages.solver.engine import warm_up as warm_up_solver
        from gapwise.stages.solver.options import LOSS_RISES

        warm_up_solver(problem, options, path, init_path(problem, path))
        if path.end == LOSS_RISES:
            import numpy as np

            from gapwise.stages.model.predict import predict

            predict(problem, np.zeros(problem.d))
    elif stage == "verify":
        from gapwise.stages.certify.recompute import warm_up as warm_up_audit

        warm_up_audit(problem)
    else:
        from gapwise.stages.evaluate import warm_up as warm_up_evaluation

        warm_up_evaluation(problem)
