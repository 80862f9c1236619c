"""Chains beside the C++ solver of S15's authors: CPU time of a pass, and to the same gap, in turns in one run.

    python tests/benchmarks/bench_mp_bcfw.py runs/features/ocr-… --source DIR [--lambda 1/n] [--gaps 0.1 0.01] [--turns 3]

DIR holds their "SVM, version 1.02" (V. Kolmogorov; GPL): SVM.h, SVM.cpp, Solve.cpp, SVMutils.h, block.h, timer.h.
`mp_bcfw.cpp`, beside this file, has the oracle of `chains.hpp`, with the number of labels known to the compiler, and what
their solver asks of planes. Both sides start from w = 0 on one thread.

*Passes*: n steps of theirs as BCFW, the median of the later passes, in the faster of two layouts of planes; n visits of each
of ours, as `bench_structure.py` counts them. *Gaps*: theirs is the time until its own bounds, computed after every iteration
and not counted, are so close: MP-BCFW with its own parameters, without averages and with its two, whichever is faster. Ours
is the time to a certificate. D is the dual value of `accelerated` at a gap of 1e-6 D; gaps are absolute.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from bench_dlib import SOLVERS, write_chains
from bench_structure import PRESETS, pass_times
from timed import timed_solve, told

from gapwise.stages.featurize import open_problem
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.methods import method_options

PROGRAM = Path(__file__).with_name("mp_bcfw.cpp")
PARTS = ("SVM.h", "SVM.cpp", "Solve.cpp", "SVMutils.h", "block.h", "timer.h")
FLAGS = "-O3 -march=native -mprefer-vector-width=512 -ffast-math -funroll-loops"
"""The fastest of four: a pass of OCR-small takes 0.54 of that with the first two."""

PASSES = 12
LAYOUTS = ("whole", "own")
PLANES, AVERAGES = 100, (0, 3)
OURS = {**{name: SOLVERS[name] for name in ("accelerated", "expensive_oracle")}, "mpbcfw": method_options("mpbcfw")}


class Theirs:
    """The compiled program, and the problem that it reads."""

    def __init__(self, problem: Problem, source: Path, flags: str, folder: Path) -> None:
        if not all((source / part).is_file() for part in PARTS):
            raise SystemExit(f"bench_mp_bcfw: expected {', '.join(PARTS)} of SVM 1.02 in {source}")
        self.program, self.file, self.results = folder / "mp_bcfw", folder / "problem", folder / "results"
        places = [f"-DLABELS={problem.labels}", "-I", str(source), "-I", str(PROGRAM.parent)]
        solve = folder / "Solve.cpp"  # as published it writes past the planes that have weights of their own
        solve.write_text(
            (source / "Solve.cpp").read_text().replace("SetZero(phi, d+1)", "SetZero(phi, terms[i]->di+1)")
        )
        parts = [str(PROGRAM), str(source / "SVM.cpp"), str(solve)]
        subprocess.run(
            ["g++", "-std=c++17", "-w", *shlex.split(flags), *places, "-o", str(self.program), *parts], check=True
        )
        write_chains(problem, self.file)

    def solve(self, lam: float, *, gap: float, passes: int, planes: int, averages: int, layout: str) -> np.ndarray:
        """float64, (iterations, 4): CPU seconds, oracle calls, lower and upper bound."""
        numbers = [repr(lam), repr(gap), str(passes), str(planes), str(averages), layout]
        subprocess.run([self.program, self.file, self.results, *numbers], check=True)
        return np.fromfile(self.results).reshape(-1, 4)

    def later_pass(self, lam: float, layout: str) -> float:
        """Milliseconds of a later pass as BCFW."""
        rows = self.solve(lam, gap=0.0, passes=PASSES, planes=0, averages=0, layout=layout)
        return 1e3 * statistics.median(np.diff(rows[:, 0]))


def compare_passes(problem: Problem, theirs: Theirs, lam: float, turns: int) -> None:
    """The lines of the passes."""
    layout = min(LAYOUTS, key=lambda layout: theirs.later_pass(lam, layout))
    cpp: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in PRESETS}
    for _ in range(turns):
        cpp.append(theirs.later_pass(lam, layout))
        for name, times in ours.items():
            times.append(statistics.median(pass_times(problem, name, lam, PASSES)[0][1:]))
    print(f"n visits, CPU ms; C++ BCFW, planes of {layout} weights: {told(cpp)}; load {os.getloadavg()[0]:.1f}")
    for name, times in ours.items():
        print(f"  {name:16} {told(times)}: C++ {min(cpp) / min(times):.2f} times", flush=True)


def compare_gaps(problem: Problem, theirs: Theirs, lam: float, gaps: list[float], turns: int) -> None:
    """The lines of the gaps."""
    _, best = timed_solve(problem, lam, 1e-6)
    layout = min(LAYOUTS, key=lambda layout: theirs.later_pass(lam, layout))
    print(f"P - D to a gap, CPU s; D = {best.dual:.6g}; load {os.getloadavg()[0]:.1f}")
    for gap in gaps:
        cpp: dict[int, list[float]] = {averages: [] for averages in AVERAGES}
        ours: dict[str, list[float]] = {name: [] for name in OURS}
        calls = {}
        for _ in range(turns):
            for averages, times in cpp.items():
                rows = theirs.solve(lam, gap=gap, passes=100_000, planes=PLANES, averages=averages, layout=layout)
                times.append(float(rows[-1, 0]))
                calls[averages] = rows[-1, 1] / problem.n
            for name, times in ours.items():
                times.append(timed_solve(problem, lam, gap / best.dual, OURS[name])[0])
        least = min(AVERAGES, key=lambda averages: min(cpp[averages]))
        print(f"  to {gap:g}: C++ MP-BCFW, avg_flag {least}: {told(cpp[least])}, {calls[least]:.0f} exact passes")
        for name, times in ours.items():
            print(f"    {name:16} {told(times)}: C++ {min(cpp[least]) / min(times):.2f} times", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--source", type=Path, required=True, help="folder of SVM 1.02")
    parser.add_argument("--flags", default=FLAGS, help="of g++")
    parser.add_argument("--lambda", dest="lam", default="1/n")
    parser.add_argument("--gaps", nargs="*", type=float, default=[])
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    problem = open_problem(given.features, "train")
    lam = 1.0 / problem.n if given.lam == "1/n" else float(given.lam)
    print(f"{given.features.name}: n = {problem.n:,}, d = {problem.d:,}, lambda = {given.lam}; g++ {given.flags}")
    with tempfile.TemporaryDirectory() as folder:
        theirs = Theirs(problem, given.source, given.flags, Path(folder))
        compare_passes(problem, theirs, lam, given.turns)
        if given.gaps:
            compare_gaps(problem, theirs, lam, given.gaps, given.turns)


if __name__ == "__main__":
    main()
