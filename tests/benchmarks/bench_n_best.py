"""Several labellings from an oracle call: `bench_n_best.py FEATURES [--eps 0.1 | --lambdas 0.01 1/n] [--n-best 1 0]`.

FEATURES is a feature store (``runs/features/<dataset>-<key>``). A path to `--eps` with `expensive_oracle`, or each of
`--lambdas` to gap / dual <= `--tolerance`, for each number of labellings a call (1: the vertex alone; 0: as many as pay).
Medians over seeds: effective passes (an n-best call counts once), cached block steps / n, breakpoints, CPU seconds of the
solve alone, and their ratio to the first row's; then the passes of every seed.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from bench_at_mean import measured

from gapwise.stages.featurize import open_problem
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--eps", type=float, default=0.1)
    parser.add_argument("--lambda-min", type=float, default=0.0)
    parser.add_argument("--kappa", type=float, default=0.84)
    parser.add_argument("--lambdas", nargs="*", default=[])
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of --lambdas, as a share of the dual value")
    parser.add_argument("--n-best", type=int, nargs="*", default=[1, 0])
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    problem = open_problem(asked.features, "train")
    print(f"{asked.features.name}: n = {problem.n:,}; passes, cached steps / n, breakpoints, CPU seconds, their ratio")
    path = PathOptions(rule="two_sided", kappa=asked.kappa, eps=asked.eps, lambda_min=asked.lambda_min)
    paths = {f"path, eps = {asked.eps:g}": path}
    if asked.lambdas:
        values = {name: 1.0 / problem.n if name == "1/n" else float(name) for name in asked.lambdas}
        paths = {
            f"lambda = {name}": PathOptions(rule="single", lam=lam, tolerance=asked.tolerance, relative=True)
            for name, lam in values.items()
        }
    for name, path in paths.items():
        first = 0.0
        for m in asked.n_best:
            options = method_options("accelerated", exact_passes="at_mean", n_best=m)
            measured(problem, options, path, 0)  # compiles
            rows = [measured(problem, options, path, seed) for seed in range(asked.seeds)]
            passes, cached, solved, seconds, _ = (statistics.median(column) for column in zip(*rows, strict=True))
            first = first or seconds
            every = " ".join(f"{row[0]:.1f}" for row in rows)
            said = f"{name}, n_best = {m}"
            counts = f"{said:32} {passes:7.1f} {cached:7.0f} {solved:4.0f}"
            print(f"{counts} {seconds:7.2f} {seconds / first:5.2f}  ({every})", flush=True)


if __name__ == "__main__":
    main()
