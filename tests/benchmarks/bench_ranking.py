"""Ranking: the oracle, a step and a pass on random queries, beside what reading and sorting the documents alone takes.

    python tests/benchmarks/bench_ranking.py [--documents 50 500] [--features 46] [--queries 100]

Documents have normal features and three levels of relevance, by a noisy linear score. CPU microseconds, one thread: the
scores of a query; scores and max-oracle; of these, numpy's sort of k numbers as a measure of what any oracle by sorting
needs. Then a visit and a pass of `bcpfw_gap_cache` and `bcfw` at lambda = 1/n, and the exact gap pass.
"""

from __future__ import annotations

import argparse

import numpy as np
from numba import njit
from visits import microseconds, oracle_costs, visit_costs

from gapwise.stages.problems import build
from gapwise.stages.problems.protocol import JIT, Problem

LEVELS = 3


@njit(**JIT)
def sorts(P, theta, times):
    """Sort as many numbers as each query has documents, `times` times."""
    total = 0
    for _ in range(times):
        for i in range(P.n):
            total += np.argsort(theta[P.local_ptr[i] : P.local_ptr[i + 1]], kind="mergesort")[0]
    return total


def random_queries(queries: int, documents: int, features: int) -> Problem:
    """Queries with the same number of documents, by falling relevance."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(queries, documents, features))
    score = x @ rng.normal(size=features) / np.sqrt(features) + rng.normal(size=(queries, documents))
    x = np.take_along_axis(x, np.argsort(-score, axis=1)[..., None], axis=1)
    relevance = np.repeat(np.arange(LEVELS)[::-1], -(-documents // LEVELS))[:documents]
    arrays = {"x": x.reshape(-1, features), "relevance": np.tile(relevance, queries).astype(float)}
    return build("ranking", arrays | {"x_ptr": np.arange(queries + 1) * documents}, {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--features", type=int, default=46)
    parser.add_argument("--queries", type=int, default=100)
    asked = parser.parse_args()
    print(
        "| documents | scores | oracle with scores | sorting alone | method | a visit | a pass, ms | exact gap pass, ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for documents in asked.documents:
        problem = random_queries(asked.queries, documents, asked.features)
        n, rng = problem.n, np.random.default_rng(1)
        w, theta, times = 0.3 * rng.normal(size=problem.d), rng.normal(size=n * documents), max(1, 5000 // documents)
        scores, oracle = oracle_costs(problem, w, times)
        sorting = microseconds(lambda: sorts(problem, theta, times), n * times)  # noqa: B023
        for name, visits, gaps in visit_costs(problem, 1.0 / n):
            print(
                f"| {documents} | {scores:.1f} | {oracle:.1f} | {sorting:.1f} | {name} | {visits:.1f} | "
                f"{visits * n / 1e3:.1f} | {gaps:.1f} |"
            )


if __name__ == "__main__":
    main()
