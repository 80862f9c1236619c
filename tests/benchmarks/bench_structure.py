"""Oracle, visit and pass of any structure, on feature stores: `bench_structure.py FEATURES... [--lam 0.01]`.

FEATURES are feature stores (``runs/features/<dataset>-<key>``). CPU time on one thread: the scores of a block at a random w;
scores and max-oracle, of which the scores are what reading the features takes in any case; a visit and a pass of
`bcfw` and `bcpfw_gap_cache`, and the exact gap pass.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from visits import oracle_costs, visit_costs

from gapwise.stages.featurize import open_problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+", type=Path)
    parser.add_argument("--lam", type=float, default=0.01)
    asked = parser.parse_args()
    print(
        "| features | n | d | scores, us | oracle with scores, us | method | a visit, us | a pass, ms | exact gap pass, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for store in asked.features:
        problem = open_problem(store, "train")
        w = np.random.default_rng(1).normal(size=problem.d) / np.sqrt(problem.d)
        w = np.clip(w, problem.lower, problem.upper) if problem.lower.size else w
        scores, oracle = oracle_costs(problem, w, 1)
        for name, visit, gaps in visit_costs(problem, asked.lam):
            print(
                f"| {store.name} | {problem.n:,} | {problem.d:,} | {scores:.1f} | {oracle:.1f} | {name} | {visit:.1f} | "
                f"{visit * problem.n / 1e3:.1f} | {gaps:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
