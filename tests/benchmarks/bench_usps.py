"""Multiclass SVM on USPS beside scikit-learn's LinearSVC (LIBLINEAR's Crammer-Singer solver): objectives and CPU seconds.

    python tests/benchmarks/bench_usps.py [folder with usps.npz] [--turns 3] [--lambdas 0.01 0.001 1/n]

LIBLINEAR minimises our objective times n C where lambda = 1 / (n C) (`stages.problems.multiclass`). For each lambda:

- *objectives*: ours, certified by its duality gap, and LinearSVC's at tol=1e-6, as digits in which they agree;
- *seconds to 1e-4*: ours ends when it certifies (P - D) / D <= 1e-4. LinearSVC certifies nothing. It gets the largest tol of
  a grid with which its objective is within 1e-4 of the least one, and the search for that tol is not counted.

Both start from w = 0 and run in this process on one core, in turn (A B A B); printed are CPU seconds, least of the turns and
all of them. Reading data and loading compiled code are not counted.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support"), str(Path(__file__).resolve().parents[2])]

from liblinear import linear_svc, objective  # noqa: E402
from memory_sink import read  # noqa: E402
from timed import timed_solve, told  # noqa: E402

from gapwise.stages.datasets import open_dataset  # noqa: E402
from gapwise.stages.problems import build  # noqa: E402
from gapwise.stages.problems.multiclass import Multiclass  # noqa: E402

TOLS = tuple(10.0**-k for k in np.arange(0.0, 5.1, 0.25))
"""Of LinearSVC, from the loosest."""
CLOSE, EXACT = 1e-4, 1e-8
"""(P - D) / D: of the race, and of the reference."""


def compare(problem: Multiclass, name: str, lam: float, turns: int) -> None:
    """The lines of one lambda."""
    x, truth = problem.rows.x.astype(np.float64), problem.truth
    _, best = timed_solve(problem, lam, EXACT)
    seconds, weights = linear_svc(x, truth, lam, 1e-6)
    theirs = objective(x, truth, weights, lam)
    apart = abs(theirs - best.primal) / best.primal
    print(
        f"lambda = {name}: P = {best.primal:.10g} (gap {best.gap:.1e}), LinearSVC at tol 1e-6 {theirs:.10g} in "
        f"{seconds:.1f} s: {apart:.1e} apart",
        flush=True,
    )
    errors = {}
    for tol in TOLS:
        errors[tol] = objective(x, truth, linear_svc(x, truth, lam, tol)[1], lam) / best.dual - 1.0
        if errors[tol] <= CLOSE:
            break
    print(f"  LinearSVC needs tol = {tol:.2g} for {CLOSE:g}: {errors[tol]:.1e} above the dual value")
    A, B = [], []
    for _ in range(turns):
        A.append(timed_solve(problem, lam, CLOSE)[0])
        B.append(linear_svc(x, truth, lam, tol)[0])
    print(f"  CPU s: ours {told(A)}, LinearSVC {told(B)}: {min(B) / min(A):.2f} times as long", flush=True)


def main() -> None:
    here = Path(__file__).resolve().parents[3] / "shared" / "data" / "usps"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "data", nargs="?", type=Path, default=Path(os.environ.get("GAPWISE_DATA", here.parent)) / "usps"
    )
    parser.add_argument("--lambdas", nargs="+", default=["0.01", "0.001", "1/n"])
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    sink, meta = read(open_dataset("usps", {"root": args.data}))
    problem = build("multiclass", sink.arrays("train"), meta)
    print(f"USPS: n = {problem.n:,}, d = {problem.d:,}; load {os.getloadavg()[0]:.1f} at the start")
    for name in args.lambdas:
        compare(problem, name, 1.0 / problem.n if name == "1/n" else float(name), args.turns)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
