"""BMRM (Teo et al., JMLR 2010) by the package structsvm beside `cutting_plane`: iterations and objectives on iris.

    pip install structsvm "ilpy[scip]"; python tests/benchmarks/bench_bmrm.py [--lambdas 0.1 0.01] [--gap 1e-4]

With the regulariser (lambda/2) ||w||^2 both add the plane of a whole pass to a model of the risk and minimise that. The
package gives the program in w, of d + 1 variables, to SCIP, so d has to be small: iris, scaled, has 15 weights. Gapwise
solves the dual, of a variable a plane.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

from structsvm.bundle_method import BundleMethod  # noqa: E402

from gapwise.stages.problems import build  # noqa: E402
from gapwise.stages.solver.engine import Engine, Task  # noqa: E402
from gapwise.stages.solver.methods import method_options  # noqa: E402
from gapwise.stages.solver.options import PathOptions  # noqa: E402


def bmrm(x: np.ndarray, truth: np.ndarray, lam: float, gap: float) -> tuple[int, float]:
    """structsvm's iterations until its bound is `gap` from its best value, and the objective there."""
    n, classes, passes = len(x), int(truth.max()) + 1, 0
    rows = np.arange(n)

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal passes
        passes += 1
        scores = x @ w.reshape(classes, -1).T
        worth = scores - scores[rows, truth][:, None] + (np.arange(classes) != truth[:, None])
        worst, gradient = worth.argmax(axis=1), np.zeros((classes, x.shape[1]))
        np.add.at(gradient, worst, x)
        np.add.at(gradient, truth, -x)
        return float(worth[rows, worst].mean()), gradient.ravel() / n

    method = BundleMethod(risk, classes * x.shape[1], lam, gap)
    method._solver.set_verbose(False)
    w = method.optimize(1000)
    made = passes
    return made, 0.5 * lam * float(w @ w) + risk(w)[0]


def ours(x: np.ndarray, truth: np.ndarray, lam: float, gap: float) -> tuple[float, float, float]:
    """Passes of `cutting_plane` until the duality gap is `gap`, the objective there, and CPU seconds."""
    path = PathOptions(rule="single", lam=lam, tolerance=gap)
    problem = build("multiclass", {"x": x.astype(np.float32), "labels": truth}, {"classes": int(truth.max()) + 1})
    engine = Engine.begin(Task(problem, method_options(name="cutting_plane", method="cutting_plane"), path))
    engine.warm_up()
    begun = time.process_time()
    (solved,) = engine.walk()
    return engine.solver.ledger.passes_here, solved.point.primal, time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lambdas", nargs="+", type=float, default=[0.1, 0.01])
    parser.add_argument("--gap", type=float, default=1e-4)
    given = parser.parse_args()
    x, truth = load_iris(return_X_y=True)
    x = np.column_stack([x / x.max(axis=0), np.ones(len(x))])
    for lam in given.lambdas:
        begun = time.process_time()
        iterations, value = bmrm(x, truth, lam, given.gap)
        between = time.process_time()
        passes, primal, seconds = ours(x, truth, lam, given.gap)
        print(
            f"lambda = {lam:g}: BMRM {iterations} iterations, P = {value:.6f}, {between - begun:.2f} CPU s; cutting_plane "
            f"{passes:.0f} passes, P = {primal:.6f}, {seconds:.2f} CPU s; load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    main()
