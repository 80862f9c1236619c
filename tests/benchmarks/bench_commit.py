"""What a commit of a solve's state costs: `python tests/benchmarks/bench_commit.py RUN FEATURES [--turns 4]`.

RUN is the directory of a run of a block-coordinate method that is still solving or was stopped (a finished one keeps no
state), FEATURES its feature store. The newest committed state is loaded, packed as at a rebase point, and committed into a
temporary folder beside RUN: seconds by the clock and of the processor.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stages.featurize import open_problem
from stages.solver.block_method import SPECS
from stages.solver.state import pool_of
from stages.solver.supports import Supports, pack
from storage.commits import CommitStore
from storage.files import read_json
from storage.layout import ArraySpec, read_group


def timed(name: str, work: Callable[[], object]) -> None:
    """Do the work, and print how long it took."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    print(f"{name:8} {time.perf_counter() - began:.2f} s, {time.process_time() - cpu:.2f} of CPU time", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("features", type=Path)
    parser.add_argument("--turns", type=int, default=4)
    asked = parser.parse_args()
    problem, state = open_problem(asked.features, "train"), asked.run / "state"
    specs = [ArraySpec(*spec) for spec in SPECS]
    arrays, _ = read_group(state / read_json(state / "HEAD.json")["name"], tuple(spec.name for spec in specs))
    names = ("support_offset", "support_alpha", "support_loss", "support_used", "support_label", "label_offset")
    pool = pool_of(problem, Supports(*(arrays[name] for name in names)))
    size = sum(array.nbytes for array in arrays.values()) / 1e6
    print(
        f"n = {problem.n:,}: {arrays['support_alpha'].size:,} labellings, {size:.1f} MB; load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory(dir=asked.run.parent) as folder:
        store = CommitStore(Path(folder) / "state", {})
        for _ in range(asked.turns):
            timed("pack", lambda: pack(pool, problem.label_ptr))
            timed("commit", lambda: store.commit(specs, arrays, {}, None))


if __name__ == "__main__":
    main()
