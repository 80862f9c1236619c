"""Whole paths over very many noisy blocks: seconds of solve and verify, where the path ends, how far it is rebuilt.

    python tests/benchmarks/bench_large.py [--blocks 1000000] [--structure multiclass chain] [--rule one_sided two_sided]

The data of tests/stages/test_large.py, which runs the same at 10^5 blocks.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from large import large_chain, large_multiclass

from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.stages.verify import verify
from gapwise.storage.results import read_path

PROBLEMS = {"multiclass": large_multiclass, "chain": large_chain}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=1_000_000)
    parser.add_argument("--structure", nargs="+", choices=sorted(PROBLEMS), default=sorted(PROBLEMS))
    parser.add_argument("--rule", nargs="+", default=["one_sided", "two_sided"])
    asked = parser.parse_args()
    for name in asked.structure:
        run(name, 1000, asked.rule[0])  # compiles
        for rule in asked.rule:
            print(run(name, asked.blocks, rule), flush=True)


def run(name: str, blocks: int, rule: str) -> str:
    """One path, solved and verified, in words."""
    problem = PROBLEMS[name](blocks)
    options = method_options(cache=CacheOptions(kind="gap"), max_passes=100.0)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        status = solve(Task(problem, options, PathOptions(rule=rule, eps=0.2)), Path(folder), key="k")
        solved = time.perf_counter()
        verdict = verify(problem, Path(folder), samples=3)
        verified = time.perf_counter()
        lams = read_path(Path(folder) / "path.zarr", ("lambda",))[0]["lambda"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"{name}, {blocks:,} blocks, {rule}: {status} at lambda {lams[-1]:.2e} of {lams[0]:.2e}, {lams.size} breakpoints; "
        f"solve {solved - began:.1f} s, verify {verified - solved:.1f} s; certified {verdict['certified']}, largest gap "
        f"{verdict['max_gap']:.3g}, rebuilt to {verdict['max_rebuild_error']:.1e}; {memory:.1f} GB at most"
    )


if __name__ == "__main__":
    main()
