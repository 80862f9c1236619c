"""Multi-plane BCFW beside its relatives, with a fast oracle and with one that waits (S15 4).

    python tests/benchmarks/bench_multiplane.py FEATURES --lambdas 0.01 0.001 1/n
    python tests/benchmarks/bench_multiplane.py FEATURES --lambdas 0.01 --wait 0.005 --seconds 240

FEATURES is a feature store (``runs/features/<dataset>-<key>``). For each solver and lambda: CPU seconds and exact passes to
certified gaps P - D, each a run of its own; and the dual value after 1, 2, 5, 10, 20, 50 exact passes (`--no-dual`: not).

With `--wait` every oracle call sleeps for so many seconds (`slow_oracle`), and each solver gets at most `--seconds` of wall
time. Then one run a solver is recorded, and its gaps are computed afterwards, with the oracle that does not wait, at points
that are 3 % of the time so far apart: wall and CPU seconds, exact passes to each gap. On a machine that others keep busy,
wall seconds are more than waiting and CPU seconds together. Where the oracle is approximate, all gaps are those of its
bounds.

`--costs 3.6e-6 2.25e-8` gives the multi-plane methods the unit costs of their slope rule, seconds per oracle call and per
labelling, in place of counted ones. With `--repeat 3` the least CPU seconds of three runs count.

`mpbcfw` makes one step a visit, the others ten. It and `mpbcfw_inner` certify the mean of w after the last exact passes
(`solver.averaging=recent`), `mpbcfw_last` and `mpbcpfw` the last w.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from parts import method_of
from slow_oracle import slowed

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.objective import squared_norm
from gapwise.stages.solver.options import CacheOptions, MultiplaneGroup, PathOptions, Status
from gapwise.stages.solver.oracles import vertices_at
from gapwise.stages.solver.path.walk import begin
from gapwise.stages.solver.solver import Solver

Row = tuple[float, float, float, np.ndarray, float]
"""Exact passes, seconds, dual value, w, CPU seconds."""

TOLERANCES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
PASSES = (1, 2, 5, 10, 20, 50)
MULTIPLANE = {
    "method": "mpbcfw", "cache": CacheOptions("gap", capacity=1000), "multiplane": MultiplaneGroup(rounds=10),
}  # fmt: skip
SOLVERS: dict[str, dict[str, Any]] = {
    "mpbcfw": {**MULTIPLANE, "averaging": "recent", "multiplane": MultiplaneGroup()},
    "mpbcfw_inner": {**MULTIPLANE, "averaging": "recent"},
    "mpbcfw_last": MULTIPLANE,
    "mpbcpfw": {**MULTIPLANE, "step": "pairwise"},
    "accelerated": {"method": "accelerated", "cache": CacheOptions("gap")},
    "bcpfw_gap_cache": {"sampler": "gap", "step": "pairwise", "cache": CacheOptions("gap")},
    "bcfw": {"sampler": "uniform", "step": "fw"},
}


def solver_of(problem: Problem, name: str, lam: float, **more: Any) -> Any:
    """A solver, compiled."""
    options = method_options(**{**SOLVERS[name], **more})
    solver = begin(problem, options, PathOptions(rule="single", lam=lam), None, seed=0)
    solver.warm_up()
    return solver


class Recorder:
    """The boundary of a solve: keeps (passes, seconds, dual, w) at each one, and stops it at a limit."""

    def __init__(self, passes: float = np.inf, seconds: float = np.inf) -> None:
        self.rows: list[Row] = []
        self.passes, self.seconds, self.begun = passes, seconds, time.process_time()

    def __call__(self, solver: Solver) -> Status | None:
        row = self.row(solver, solver.point)
        self.rows.append(row)
        return Status.TIME_LIMIT if row[0] >= self.passes or row[1] >= self.seconds else None

    def row(self, solver: Solver, w: np.ndarray) -> Row:
        """What is known of a solver now."""
        spent = time.process_time() - self.begun
        return solver.ledger.passes_here, solver.counts.seconds, solver.dual_value(), w.copy(), spent

    def row_at(self, column: int, value: float) -> int:
        """The first row at which passes (0) or seconds (1) have reached a value; -1 if none has."""
        return next((k for k, row in enumerate(self.rows) if row[column] >= value - 1e-9), -1)


def costs_of(name: str, costs: list[float] | None) -> dict[str, Any]:
    """Options that give a solver the unit costs of its slope rule, if it has one."""
    if costs is None or SOLVERS[name].get("method") != "mpbcfw":
        return {}
    return {"multiplane": replace(SOLVERS[name]["multiplane"], oracle_seconds=costs[0], plane_seconds=costs[1])}


def certified(problem: Problem, name: str, lam: float, tolerance: float, arguments: argparse.Namespace) -> str:
    """CPU seconds, exact passes and, of multi-plane methods, approximate ones to a certified gap."""
    most, least, passes = arguments.seconds, np.inf, ""
    for _ in range(arguments.repeat):
        solver = solver_of(problem, name, lam, **costs_of(name, arguments.costs))
        begun = time.process_time()
        end = begun + most
        status, _ = solver.solve(tolerance, lambda _, end=end: Status.TIME_LIMIT if time.process_time() > end else None)
        if status is not Status.CONVERGED:
            return f"not in {most:g} s"
        least, passes = min(least, time.process_time() - begun), f"{solver.ledger.passes_here:.0f}"
        if solver.options.method == "mpbcfw":
            passes += f" + {sum(row[-1] for row in method_of(solver).iterations):.0f}"
    return f"{least:.3g}, {passes}"


def fast(problem: Problem, arguments: argparse.Namespace, lam: float) -> None:
    """The two tables of a fast oracle."""
    print("| CPU s, exact passes to P − D ≤ | " + " | ".join(f"{t:g}" for t in arguments.tolerances) + " |")
    print("|---" * (len(arguments.tolerances) + 1) + "|")
    for name in arguments.solvers:
        cells = []
        for tolerance in arguments.tolerances:
            cells.append(certified(problem, name, lam, tolerance, arguments))
            if cells[-1].startswith("not"):
                break
        print(
            f"| `{name}` | " + " | ".join([*cells, *["–"] * (len(arguments.tolerances) - len(cells))]) + " |",
            flush=True,
        )
    if not arguments.dual:
        return
    print("\n| D after exact passes | " + " | ".join(f"{p}" for p in PASSES) + " |")
    print("|---" * (len(PASSES) + 1) + "|")
    for name in arguments.solvers:
        record = Recorder(passes=PASSES[-1])
        costs = costs_of(name, arguments.costs)
        solver_of(problem, name, lam, rebase_steps=problem.n, **costs).solve(1e-12, record)
        cells = [f"{record.rows[record.row_at(0, p)][2]:.5f}" for p in PASSES]
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


def waiting(problem: Problem, arguments: argparse.Namespace, lam: float) -> None:
    """The table of a slow oracle."""
    slow = slowed(problem, arguments.wait)
    print(
        "| wall s (CPU s), exact passes to P − D ≤ | "
        + " | ".join(f"{t:g}" for t in arguments.tolerances)
        + " | at the end |"
    )
    print("|---" * (len(arguments.tolerances) + 2) + "|")

    def gap(row: Row) -> float:
        _, _, dual, w, _ = row
        hinge = float(np.mean(vertices_at(problem, w, range(problem.n)).upper_hinge))
        return 0.5 * lam * squared_norm(w) + hinge - dual

    for name in arguments.solvers:
        costs = costs_of(name, arguments.costs)
        solver = solver_of(slow, name, lam, rebase_steps=max(1, problem.n // 4), **costs)
        record = Recorder(seconds=arguments.seconds)
        solver.solve(arguments.tolerances[-1], record)
        rows = [*spaced(record.rows), record.row(solver, solver.primal())]
        gaps = [(row, gap(row)) for row in rows]
        cells = []
        for tolerance in arguments.tolerances:
            row = next((row for row, reached in gaps if reached <= tolerance), None)
            cells.append(f"{row[1]:.1f} ({row[4]:.1f}), {row[0]:.1f}" if row else "–")
        end, reached = gaps[-1]
        cells.append(f"{end[1]:.0f} ({end[4]:.0f}), {end[0]:.0f}: {reached:.3g}")
        print(f"| `{name}` | " + " | ".join(cells) + " |", flush=True)


def spaced(rows: list[Row]) -> list[Row]:
    """Rows whose seconds are at least 3 % apart."""
    apart: list[Row] = []
    for row in rows:
        if not apart or row[1] >= 1.03 * apart[-1][1]:
            apart.append(row)
    return apart


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--lambdas", nargs="+", default=["0.01"])
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--tolerances", type=float, nargs="+", default=list(TOLERANCES), help="falling")
    parser.add_argument(
        "--dual", action=argparse.BooleanOptionalAction, default=True, help="also the table of dual values"
    )
    parser.add_argument("--wait", type=float, default=0.0, help="seconds that each oracle call sleeps")
    parser.add_argument("--seconds", type=float, default=60.0, help="most seconds of a solve")
    parser.add_argument(
        "--costs", type=float, nargs=2, metavar="SECONDS", help="per oracle call and per labelling; measured otherwise"
    )
    parser.add_argument("--repeat", type=int, default=1, help="runs of which the fastest counts")
    arguments = parser.parse_args()
    problem = open_problem(arguments.features, "train")
    print(f"{arguments.features.name}: n = {problem.n:,}, d = {problem.d:,}, oracle + {1e3 * arguments.wait:g} ms")
    for text in arguments.lambdas:
        lam = 1.0 / problem.n if text == "1/n" else float(text)
        print(f"\nlambda = {text}\n")
        if arguments.wait:
            waiting(problem, arguments, lam)
        else:
            fast(problem, arguments, lam)


if __name__ == "__main__":
    main()
