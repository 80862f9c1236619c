"""What random order costs beside the order of memory: `python tests/benchmarks/bench_order.py FEATURES ... [--turns 7]`.

FEATURES are feature stores (``runs/features/<dataset>-<key>``), such as those of `synthetic_letters.py` with 10^4 to 10^6
words. For each and for each kind of visit: CPU microseconds of a visit in the order of memory and in random order, least of
`--turns` passes of each, by turns in one process, after two passes that fill the supports; and their ratio. The last row is
of the passes over the cache that `accelerated` makes, after two moving passes.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from parts import visits_of

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.codes import CACHE_ONLY
from gapwise.stages.solver.distances import with_room
from gapwise.stages.solver.loop import cached_steps_driver
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions
from gapwise.stages.solver.path.walk import begin

KINDS: dict[str, dict[str, Any]] = {
    "Frank-Wolfe": {"sampler": "permutation", "step": "fw"},
    "pairwise": {"sampler": "permutation", "step": "pairwise"},
    "pairwise, cache": {"sampler": "permutation", "step": "pairwise", "cache": CacheOptions(kind="gap")},
}


def microseconds(problem: Problem, options: MethodOptions, cached: bool, turns: int) -> tuple[float, float]:
    """CPU microseconds of a visit in the order of memory and in random order."""
    n, rng = problem.n, np.random.default_rng(0)
    solver = begin(problem, options, PathOptions(rule="single", lam=0.01), None, 0)
    solver.warm_up()
    visits = visits_of(solver)
    for _ in range(2):
        visits.run(visits.flags(), rng.permutation(n), n)
    flags = visits.flags(vertex_from=CACHE_ONLY) if cached else visits.flags()
    visit = partial(visits.run, flags, steps=n)
    if options.method == "accelerated":  # as `Visits.cached_visits` makes them
        S = solver.iterate.state
        state = S._replace(distances=with_room(S.distances, S.pool.counts))
        visit = partial(cached_steps_driver(problem), problem, state, flags)
    times: dict[str, list[float]] = {"memory": [], "random": []}
    for _ in range(turns):
        for name, order in (("memory", np.arange(n)), ("random", rng.permutation(n))):
            began = time.process_time()
            visit(order)
            times[name].append(1e6 * (time.process_time() - began) / n)
    return min(times["memory"]), min(times["random"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--turns", type=int, default=7)
    asked = parser.parse_args()
    print(
        "| features | n | visits | in the order of memory, us | in random order, us | ratio |\n|---|---|---|---|---|---|"
    )
    for store in asked.features:
        problem = open_problem(store, "train")
        kinds = [(name, method_options(refresh_every=0, **options), False) for name, options in KINDS.items()]
        kinds.append(("cached", method_options(refresh_every=0, **KINDS["pairwise, cache"]), True))
        kinds.append(("cached, accelerated", method_options("accelerated"), True))
        for name, options, cached in kinds:
            memory, chance = microseconds(problem, options, cached, asked.turns)
            row = f"{store.name} | {problem.n:,} | {name} | {memory:.2f} | {chance:.2f} | {chance / memory:.2f}"
            print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main()
