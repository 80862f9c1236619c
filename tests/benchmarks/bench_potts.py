"""Potts oracles with their bounds on real features: CPU ms a call, slack of the bounds, share of proven blocks.

    python tests/benchmarks/bench_potts.py RUN FEATURES [--sweeps 5 20 100] [--every 3]

RUN is the directory of a run on `dataset=stanford` or `msrc`, FEATURES its feature store (runs/features/...). At the first,
a middle and the last solved lambda, every training block gets one call with slack 0 and each number of sweeps, and one with
the run's own options for each kind of oracle.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.potts.potts import ORACLES
from gapwise.stages.solver.oracles import vertices_at
from gapwise.storage.backend import location
from gapwise.storage.results import read_path, weights_of

TURNS = 3
"""The least time of so many calls counts."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("features")
    parser.add_argument("--sweeps", type=int, nargs="*", default=[5, 20, 100])
    parser.add_argument("--every", type=int, help="at every so many solved lambdas, instead of three of them")
    asked = parser.parse_args()
    problem = open_problem(location(asked.features), "train")
    run = location(asked.run)
    lams = read_path(run / "path.zarr", ("lambda",))[0]["lambda"]
    weights = weights_of(run / "path.zarr")
    superpixels, edges = np.diff(problem.label_ptr).mean(), np.diff(problem.images.edge_ptr).mean()
    print(
        f"{problem.n} blocks, {superpixels:.0f} superpixels, {edges:.0f} edges, {problem.labels} labels, d = {problem.d}"
    )
    variants = [(f"trws, {n} sweeps", problem._replace(sweeps=n, slack=0.0, oracle=0)) for n in asked.sweeps]
    variants += [(f"{name}, own options", problem._replace(oracle=k)) for k, name in enumerate(ORACLES)]
    vertices_at(problem, weights(0), range(1))
    print("| λ | oracle | ms | mean slack | proven | mean answer |\n|---|---|---|---|---|---|")
    for b in range(0, lams.size, asked.every) if asked.every else sorted({0, lams.size // 2, lams.size - 1}):
        w = weights(b)
        for name, variant in variants:
            spent = np.inf
            for _ in range(TURNS):
                began = time.thread_time()
                answers = vertices_at(variant, w, range(problem.n))
                spent = min(spent, 1e3 * (time.thread_time() - began) / problem.n)
            slack = "–" if answers.bound is answers.h else f"{np.mean(answers.bound - answers.h):.1e}"
            proven = "–" if answers.bound is answers.h else f"{np.mean(answers.proven):.2f}"
            print(f"| {lams[b]:.3g} | {name} | {spent:.2f} | {slack} | {proven} | {np.mean(answers.hinge):.6f} |")


if __name__ == "__main__":
    main()
