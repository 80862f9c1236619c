"""Compile kernels that most test files use into numba's disk cache: ``python kernels.py NAME...``.

Two processes do this side by side before a whole test session from nothing. Otherwise its workers would all compile the
same kernels at first.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path

from gapwise import parts
from gapwise.stages import problems
from gapwise.stages.problems import kernel_cache

SHARES = (("chain",), ("multiclass", "segmentation"))
"""Names in `tiny.TINY`, in shares that take about the same time."""


def compile_all() -> None:
    """Compile everything, in one process a share, unless that was done; returns when all have ended.

    Who fails is reported by its tests.
    """
    home, folder = Path(problems.__path__[0]).parents[1], kernel_cache.folder()
    rooms = [home.joinpath(*room.split(".")[1:]) for room in kernel_cache.ROOMS]
    sources = {str(file.relative_to(home)): file for room in rooms for file in room.rglob("*.py")}
    done = folder / f"tests-{parts.digest_of(sources, sys.version)[:16]}"
    if done.exists():
        return
    print(f"compiling kernels into {folder}, once: about a minute", flush=True)
    running = [subprocess.Popen([sys.executable, __file__, *names], cwd=home) for names in SHARES]
    codes = [process.wait() for process in running]
    if not any(codes):
        done.touch()


def compile_of(names: list[str]) -> None:
    """Solve, verify and evaluate the instances of these names with the default method."""
    import numpy as np
    from solved import options_of, path_of
    from tiny import TINY

    from gapwise.stages.model.predict import predict
    from gapwise.stages.solve import Task, solve
    from gapwise.stages.verify import verify

    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            problem = TINY[name]()
            solve(Task(problem, options_of(), path_of(rule="paper", lambda_min=0.5)), Path(folder), key="k")
            verify(problem, Path(folder))
            predict(problem, np.zeros(problem.d))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent))
    gc.disable()  # numba makes many objects that stay
    compile_of(sys.argv[1:])
