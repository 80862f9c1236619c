"""Two versions of the solver, pass by pass: `python tests/benchmarks/bench_versions.py FEATURES OTHER_CLONE [--turns 6]`.

FEATURES is a feature store, OTHER_CLONE a checkout of the version to compare with, which reads the same store or, where
its format differs, its own of the same data (`--other-features`). Each runs its own copy of this file and its own
packages, whatever is installed. Both make the same passes from the same seed, in processes that take turns on one core.
Printed is, for each kind of pass, the ratio of the sums over passes of the least time that any process took for it:
this version's over the other's. Least times shut out what else the machine does; single processes may differ by 30 %.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PASSES = 120
HERE = Path(__file__).resolve().parents[2]


def seconds_by_pass(features: Path) -> dict[str, list[float]]:
    """Seconds of every pass, by kind of pass."""
    from parts import visits_of

    from gapwise.stages.featurize import open_problem
    from gapwise.stages.solver.codes import CACHE_ONLY
    from gapwise.stages.solver.exact import exact_pass
    from gapwise.stages.solver.methods import method_options
    from gapwise.stages.solver.options import CacheOptions, PathOptions
    from gapwise.stages.solver.path.walk import begin

    problem, cache = open_problem(features, "train"), CacheOptions(kind="gap")
    word = "kind" if "kind" in PathOptions.__dataclass_fields__ else "rule"  # earlier versions had kinds of paths
    n, path = problem.n, PathOptions(**{word: "single", "lam": 0.01})
    kinds = {
        "FW, uniform": {"sampler": "uniform", "step": "fw"},
        "pairwise, gap sampling": {"sampler": "gap", "step": "pairwise"},
        "the same, cache": {"sampler": "gap", "step": "pairwise", "cache": cache},
        "best step, cache": {"sampler": "permutation", "step": "best", "cache": cache},
    }
    seconds = {}
    for name, choices in kinds.items():
        solver = begin(problem, method_options(rebase_steps=n, refresh_every=0, **choices), path, None, 0)
        solver.warm_up()
        visits = visits_of(solver)
        it = solver.it if hasattr(solver, "it") else solver.iterate  # its name in earlier versions
        work = timed(lambda visits=visits: visits.run(visits.flags(), np.random.default_rng(0).permutation(n), n))
        seconds[name] = work[3:]
        it.rebase()
    seconds["exact"] = timed(lambda: exact_pass(it))
    solver = begin(problem, method_options(method="accelerated", cache=cache), path, None, 0)
    solver.warm_up()
    visits = visits_of(solver)
    visits.visit(rounds=2)
    visits.it.make_room(n)
    seconds["cached"] = timed(lambda: visits.visit(vertex_from=CACHE_ONLY, rounds=2))[3:]
    return seconds


def timed(work) -> list[float]:
    seconds = []
    for _ in range(PASSES):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return seconds


def in_turn(clones: list[tuple[Path, Path]], turns: int) -> list[dict[str, float]]:
    """For each clone, given with its features, the sum over passes of the least seconds, by kind of pass."""
    least: list[dict[str, np.ndarray]] = [{} for _ in clones]
    for k, (clone, features) in list(enumerate(clones)) * turns:
        env = {**os.environ, "PYTHONPATH": str(clone / ".src")}
        command = [sys.executable, str(clone / Path(__file__).relative_to(HERE)), str(features)]
        printed = subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, check=True).stdout
        for name, seconds in json.loads(printed).items():
            least[k][name] = np.minimum(least[k].get(name, np.inf), seconds)
    return [{name: float(np.sum(seconds)) for name, seconds in passes.items()} for passes in least]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--other-features", type=Path)
    parser.add_argument("--turns", type=int, default=6)
    arguments = parser.parse_args()
    if arguments.other is None:
        print(json.dumps(seconds_by_pass(arguments.features)))
        return
    features = arguments.features.resolve()
    others = (arguments.other_features or features).resolve()
    other, this = in_turn([(arguments.other.resolve(), others), (HERE, features)], arguments.turns)
    for name, seconds in this.items():
        print(f"{name:24} {1e3 * seconds / PASSES:8.2f} ms   this / other {seconds / other[name]:.3f}")


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    main()
