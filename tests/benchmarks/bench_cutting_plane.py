"""Cutting planes beside BCFW and `accelerated` at single lambdas: passes and CPU seconds to a gap, all in one process.

python tests/benchmarks/bench_cutting_plane.py runs/features/ocr-… [--lambdas 0.01 1/n] [--tolerance 0.01] [--seconds 60]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from gapwise.stages.featurize import open_problem
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.solver.path.walk import begin

WAYS = {
    "cutting_plane": {"method": "cutting_plane"},
    "cutting_plane_nslack": {"method": "cutting_plane_nslack"},
    "bcfw": {"method": "bcfw", "sampler": "uniform", "step": "fw"},
    "accelerated": {"method": "accelerated"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("features", type=Path)
    parser.add_argument("--lambdas", nargs="+", default=["0.01", "0.001", "1/n"])
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds after which a solve is ended")
    parser.add_argument("--solvers", nargs="+", default=list(WAYS))
    given = parser.parse_args()
    problem = open_problem(given.features, "train")
    for text in given.lambdas:
        lam = 1.0 / problem.n if text == "1/n" else float(text)
        for name in given.solvers:
            solver = begin(problem, method_options(**WAYS[name]), PathOptions(rule="single", lam=lam), None, seed=0)
            solver.warm_up()
            started = time.process_time()

            def boundary(_, started: float = started) -> Status | None:
                return Status.TIME_LIMIT if time.process_time() - started > given.seconds else None

            status, _ = solver.solve(given.tolerance, boundary)
            spent, last = time.process_time() - started, solver.trace[-1]
            print(
                f"lambda {lam:.3g}  {name:20s}  {status:10s}  passes {solver.ledger.passes_here:6.0f}  CPU {spent:6.1f} s  "
                f"gap {last[7]:.3g}  dual {last[8]:.6g}  labellings {solver.iterate.state.pool.counts.sum()}  "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
