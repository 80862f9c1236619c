"""The oracle of matchings: scores and argmax of 20 x 20 words, and of the sentence pairs of a feature store.

    python tests/benchmarks/bench_matching.py                            # random pairs of 20 x 20 words, 82 features
    python tests/benchmarks/bench_matching.py runs/features/hansards-…   # also the training pairs of a store

CPU microseconds a call, one thread, after `--repeat` calls for each pair. The random scores have means from -2 to 1 standard
deviations: below 0 most links are left out at the start, as they are near the optimum of training; above, paths are long.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from visits import microseconds, oracle_costs

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import Problem

WORDS, FEATURES, PAIRS = 20, 82, 50


def scipy_alone(repeats: int) -> float:
    """CPU microseconds of scipy's assignment of WORDS words to as many, or to none at no gain."""
    rng = np.random.default_rng(2)
    gains = [np.hstack([rng.normal(size=(WORDS, WORDS)), np.zeros((WORDS, WORDS))]) for _ in range(PAIRS)]
    return microseconds(
        lambda: [linear_sum_assignment(g, maximize=True) for _ in range(repeats) for g in gains], PAIRS * repeats
    )


def random_pairs(fertility: int) -> Problem:
    """Pairs of 20 x 20 words whose features are normal, the last one a constant."""
    rng, cells = np.random.default_rng(0), WORDS * WORDS
    x = rng.normal(size=(PAIRS * cells, FEATURES)).astype(np.float32)
    x[:, -1] = 1.0
    arrays_of_pair: dict[str, Any] = {
        "counts": np.full(WORDS, WORDS), "column": np.tile(np.arange(WORDS), WORDS), "role": np.zeros(cells, np.uint8),
        "labels": np.zeros(WORDS * fertility, np.uint8), "kind": np.zeros(2 * WORDS, np.uint8),
    }  # fmt: skip
    arrays = {"x": x, "x_ptr": np.arange(PAIRS + 1) * cells}
    for name, values in arrays_of_pair.items():
        arrays |= {name: np.tile(values, PAIRS), f"{name}_ptr": np.arange(PAIRS + 1) * values.size}
    return build("matching", arrays, {"fertility": fertility, "kinds": 1})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=100)
    asked = parser.parse_args()
    for fertility in (1, 2):
        problem = random_pairs(fertility)
        w = np.random.default_rng(1).normal(size=problem.d) / np.sqrt(FEATURES)
        w[FEATURES:] = -0.5
        for mean in (-2.0, -1.0, 0.0, 1.0):
            w[FEATURES - 1] = mean
            scores, both = oracle_costs(problem, w, asked.repeat)
            print(
                f"{WORDS} x {WORDS}, fertility {fertility}, mean {mean:4.1f}: scores {scores:5.1f} us, oracle {both:5.1f} us"
            )
    print(f"scipy.optimize.linear_sum_assignment of such pairs alone: {scipy_alone(10):.1f} us")
    if asked.features is not None:
        problem = open_problem(asked.features, "train")
        for name, w in (("w = 0", np.zeros(problem.d)), ("random w", np.random.default_rng(1).normal(size=problem.d))):
            w = np.clip(w, problem.lower, problem.upper) if problem.lower.size else w
            scores, both = oracle_costs(problem, w, max(1, asked.repeat // 10))
            print(f"{problem.n} pairs, {name}: scores {scores:5.1f} us, oracle {both:5.1f} us")


if __name__ == "__main__":
    main()
