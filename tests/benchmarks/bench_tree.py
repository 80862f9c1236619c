"""Max-oracles of poses: CPU ms a call at 26 nodes, 60 x 60 places and 13 x 13 types, and on the features of a run.

    python tests/benchmarks/bench_tree.py [RUN FEATURES]

Without arguments, score maps are random, which prunes little. RUN is the directory of a run on `dataset=lsp`, FEATURES its
feature store (runs/features/...): at the first, a middle and the last solved lambda, 20 training images get one call each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from gapwise.stages.datasets.poses.skeleton import PARENT
from gapwise.stages.featurize import open_problem
from gapwise.stages.problems import build
from gapwise.stages.problems.tree.tree import squares
from gapwise.storage.backend import location
from gapwise.storage.results import read_path, weights_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))

IMAGES = 20


def spent(problem, w, blocks) -> float:
    """CPU ms a call of the max-oracle."""
    y, scratch = np.zeros(int(problem.label_ptr[1]), np.int16), problem.scratch()
    began = time.thread_time()
    for i in blocks:
        problem.max_oracle(i, w, y, scratch)
    return 1e3 * (time.thread_time() - began) / len(blocks)


def random_maps() -> None:
    """A grid of 60 x 60 with random maps; springs of three strengths."""
    from tiny.tree_instances import tree_arrays

    problem = build("tree", tree_arrays(0, PARENT.tolist(), 13, [(60, 60)]), {"per_cell": 0.1})
    rng = np.random.default_rng(0)
    square = squares(26, 13)
    print("| weights | ms |\n|---|---|")
    spent(problem, np.zeros(problem.d), [0])  # compiled
    for name, w in (
        ("all 0", np.zeros(problem.d)),
        ("equal springs, maps × 1", np.where(square, 1.0, 0.0) + np.where(np.arange(problem.d) < 26, 1.0, 0.0)),
        ("random", np.where(square, np.abs(rng.normal(size=problem.d)), rng.normal(size=problem.d))),
    ):
        print(f"| {name} | {spent(problem, w, [0] * 5):.1f} |")


def of_a_run(run: str, features: str) -> None:
    """The oracle at the weights of a run."""
    problem = open_problem(location(features), "train")
    folder = location(run)
    lams, weights = read_path(folder / "path.zarr", ("lambda",))[0]["lambda"], weights_of(folder / "path.zarr")
    sizes = problem.hw.prod(axis=1)
    print(f"{problem.n} images, {sizes.mean():.0f} places, d = {problem.d}\n\n| λ | ms |\n|---|---|")
    spent(problem, np.asarray(weights(0)), [0])  # compiled
    for b in sorted({0, lams.size // 2, lams.size - 1}):
        print(f"| {lams[b]:.3g} | {spent(problem, np.asarray(weights(b)), range(min(IMAGES, problem.n))):.1f} |")


if __name__ == "__main__":
    random_maps() if len(sys.argv) == 1 else of_a_run(*sys.argv[1:3])
