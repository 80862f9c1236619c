"""Compile the kernels of the tiny instances into numba's disk cache: ``python kernels.py NAME...``.

Two processes do this side by side before a whole test session, half of the structures each. Otherwise both workers of the
session would compile all of them, at about the same time.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path

SHARES = (
    ("chain", "python_oracle"),
    ("multiclass", "segmentation"),
)
"""Names in `tiny.TINY`, an instance of each type, in shares that take about the same time."""


def compile_all() -> None:
    """Compile everything, in one process a share; returns when all have ended. Who fails is reported by its tests."""
    running = [
        subprocess.Popen([sys.executable, __file__, *names], cwd=Path(__file__).resolve().parents[2])
        for names in SHARES
    ]
    for process in running:
        process.wait()


def compile_of(names: list[str]) -> None:
    """Solve, verify and evaluate the instances of these names with methods that use all compiled functions.

    Those of `tiny.BY_DEFAULT_METHOD` with the default method alone; of the others, what --faults=full asks for is compiled
    where it is used.
    """
    import numpy as np
    from solved import options_of, path_of
    from tiny import BY_DEFAULT_METHOD, TINY

    from gapwise.stages.evaluate import predict
    from gapwise.stages.solve import Task, solve
    from gapwise.stages.verify import verify

    single = path_of(rule="single", lam=0.3, tolerance=0.05)
    usual = tuple((options_of(), path_of(rule=rule, lambda_min=0.5)) for rule in ("one_sided", "paper"))
    batches = (options_of(batch_size=2), single)
    accelerated = (options_of(method="accelerated"), single)
    others = (
        batches,
        (options_of(batch_step=True), single),
        (options_of(method="mpbcfw", step="pairwise"), single),
        (options_of(method="cutting_plane_nslack"), single),
        (options_of(method="accelerated"), path_of(rule="two_sided", kappa=0.7, eps=0.2, lambda_min=0.3)),
    )
    also = {
        "multiclass": ((options_of(method="bcfw_nols"), single), (options_of(method="ssg", max_passes=3.0), single)),
        "python_oracle": (batches, accelerated),
        "segmentation": (accelerated,),
    }
    for name in names:
        for options, path in (*usual, *(() if name in BY_DEFAULT_METHOD else others), *also.get(name, ())):
            with tempfile.TemporaryDirectory() as folder:
                problem = TINY[name]()
                solve(Task(problem, options, path), Path(folder), key="k")
                verify(problem, Path(folder))
                predict(problem, np.zeros(problem.d))


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root), str(root / "tests" / "support")]
    gc.disable()  # as in pipeline/precompile.py
    for name in sys.argv[1:]:
        compile_of([name])
        gc.collect()
