"""Chains beside dlib's OCA, its cutting planes for structural SVMs: CPU seconds to the same objective, in one run.

    python tests/benchmarks/bench_dlib.py runs/features/ocr-… --dlib DIR [--lambdas 0.01 1/n] [--turns 3] [--seconds 60]

DIR is dlib's source, whose headers are enough (`pip download --no-binary dlib --no-deps dlib`, unpacked). `dlib_oca.cpp`,
beside this file, has the oracle and the joint features as a user of dlib writes them, with the number of labels known to the
compiler; it is compiled here with `--flags`. Both sides minimise lambda/2 ||w||^2 + the mean structured hinge from w = 0 on
one thread, in turns (A B A B); printed are CPU seconds, least of the turns and all of them. Reading data, features of the
truth and loading compiled code are not counted. D is the dual value of `accelerated` at a gap of 1e-6 D. Then

- *ours* is the time to a certificate of (P - D) / D <= tolerance, one solve for each tolerance and solver;
- *dlib* is the time until it has computed its objective at any w with (P(w) - D) / D <= tolerance, whether it knows that or
  not: P(w) is recomputed here by an exact pass. Without its cache dlib's own objectives have to agree with that to 1e-10;
- *dlib, certified* is the time until the least of these objectives and its greatest lower bound are that close.

dlib is told to stop at the smallest tolerance. `--ways` names how it keeps joint features and how many labellings a
sequence it caches (dlib's default is 5). All are tried once, each no longer than the best one before it took, and the one
that reaches the smallest tolerance first races. "inf" is a tolerance that was not reached. Every w of a run is kept, 8 d
bytes an iteration.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from timed import ACCELERATED, timed_solve, told  # noqa: E402

from gapwise.stages.certify.recompute import primal_at  # noqa: E402
from gapwise.stages.featurize import open_problem  # noqa: E402
from gapwise.stages.problems.chain import Chain, Sparse  # noqa: E402
from gapwise.stages.problems.protocol import Problem  # noqa: E402
from gapwise.stages.solver.methods import method_options  # noqa: E402
from gapwise.stages.solver.options import CacheOptions  # noqa: E402

SOURCE = Path(__file__).with_name("dlib_oca.cpp")
SOLVERS = {
    "accelerated": ACCELERATED,
    "bcpfw_gap_cache": method_options(cache=CacheOptions("gap")),
    "expensive_oracle": method_options("accelerated", exact_passes="at_mean"),
}
WAYS = ("sparse-0", "sparse-5", "dense-0", "dense-5")
EXACT = 1e-6
"""(P - D) / D of the reference."""
AGREE = 1e-10
"""Of P(w) in C++ and here, as a share."""


class Run(NamedTuple):
    """One solve by dlib; a row for each w that it evaluated, the first one, 0, left out."""

    seconds: np.ndarray
    """CPU seconds until its objective at w was known."""
    stated: np.ndarray
    """That objective; an estimate from below where cached labellings stand for the oracle's."""
    bound: np.ndarray
    """Its lower bound."""
    calls: np.ndarray
    """Calls of the oracle."""
    w: np.ndarray

    def certified(self, gap: float) -> float:
        """CPU seconds until its own bounds are at most `gap` apart, for a run without cache; inf if never."""
        near = np.minimum.accumulate(self.stated) - np.maximum.accumulate(self.bound) <= gap
        return float(self.seconds[np.argmax(near)]) if near.any() else np.inf

    def reached(self, problem: Problem, lam: float, value: float) -> float:
        """CPU seconds until some w had P(w) <= value; inf if none."""
        for k in np.flatnonzero(self.stated <= value * (1.0 + AGREE)):
            if primal_at(problem, self.w[k], lam) <= value:
                return float(self.seconds[k])
        return np.inf


def write_chains(problem: Problem, file: Path) -> None:
    """The file that `chains.hpp` reads."""
    if not isinstance(problem, Chain) or not isinstance(problem.tokens, Sparse) or problem.tokens.values.size:
        raise SystemExit("expected chains whose attributes all have the value 1 (ocr, conll)")
    attributes = (problem.d - problem.labels**2) // problem.labels
    with file.open("wb") as out:
        np.array([problem.n, problem.truth.size, problem.tokens.ids.size, attributes], np.int64).tofile(out)
        for array, kind in (
            (problem.label_ptr, np.int64),
            (problem.tokens.row_ptr, np.int64),
            (problem.truth, np.int32),
            (problem.tokens.ids, np.int32),
        ):
            np.asarray(array, kind).tofile(out)


class Oca:
    """The compiled program, and the problem that it reads."""

    def __init__(self, problem: Problem, dlib: Path, flags: str, folder: Path) -> None:
        if not (dlib / "dlib" / "svm" / "structural_svm_problem.h").is_file():
            raise SystemExit(
                f"bench_dlib: expected dlib/svm/structural_svm_problem.h in {dlib}. Get the source by `pip download "
                "--no-binary dlib --no-deps dlib`, unpack it, and give the folder that dlib/ is in as --dlib"
            )
        self.program, self.file, self.results = folder / "dlib_oca", folder / "problem", folder / "results"
        self.d = problem.d
        macros = [f"-DLABELS={problem.labels}", "-I", str(dlib)]
        command = ["g++", "-std=c++17", *shlex.split(flags), *macros, "-o", str(self.program), str(SOURCE)]
        subprocess.run(command, check=True)
        write_chains(problem, self.file)

    def solve(self, lam: float, gap: float, way: str, limit: float) -> Run:
        """Until dlib's own gap is at most `gap`, or for `limit` CPU seconds."""
        features, cache = way.split("-")
        numbers = [repr(float(lam)), repr(float(gap)), features, cache, repr(limit)]
        subprocess.run([self.program, self.file, self.results, *numbers], check=True)
        rows = np.fromfile(self.results).reshape(-1, 4 + self.d)
        return Run(*rows[:, :4].T, rows[:, 4:])


def disagreement(problem: Problem, lam: float, run: Run) -> float:
    """Largest |P(w) here - P(w) there| / P(w) over up to 100 of the w's of a run without cache."""
    some = np.unique(np.linspace(0, len(run.w) - 1, 100).astype(int))
    return max(abs(run.stated[k] / primal_at(problem, run.w[k], lam) - 1.0) for k in some)


def compare(problem: Problem, oca: Oca, name: str, given: argparse.Namespace) -> None:
    """The lines of one lambda."""
    lam = 1.0 / problem.n if name == "1/n" else float(name)
    tolerances = sorted(given.tolerances, reverse=True)
    least = tolerances[-1]
    _, best = timed_solve(problem, lam, EXACT)
    print(f"\nlambda = {name}: D = {best.dual:.10g}, P - D = {best.gap:.1e}; load {os.getloadavg()[0]:.1f}", flush=True)

    def first(run: Run, tolerance: float) -> float:
        return run.reached(problem, lam, best.dual * (1.0 + tolerance))

    tried = {}
    for way in given.ways if len(given.ways) > 1 else ():
        limit = min([given.seconds, *(seconds[-1] for seconds in tried.values())])
        run = oca.solve(lam, least * best.dual, way, limit)
        tried[way] = [first(run, tolerance) for tolerance in tolerances]
        words = ", ".join(f"{seconds:.2f}" for seconds in tried[way])
        print(
            f"  tried dlib {way}: {words} s; {len(run.w)} iterations, {run.calls[-1] / problem.n:.0f} passes",
            flush=True,
        )
    way = min(tried, key=lambda way: tried[way][::-1], default=given.ways[0])
    ours: dict[tuple[str, float], list[float]] = {(s, t): [] for s in given.solvers for t in tolerances}
    names = ["dlib", "dlib, certified"] if way.endswith("-0") else ["dlib"]  # with a cache its objectives are estimates
    theirs: dict[tuple[str, float], list[float]] = {(s, t): [] for s in names for t in tolerances}
    for _ in range(given.turns):
        for (solver, tolerance), seconds in ours.items():
            seconds.append(timed_solve(problem, lam, tolerance, SOLVERS[solver])[0])
        run = oca.solve(lam, least * best.dual, way, given.seconds)
        for (kind, tolerance), seconds in theirs.items():
            seconds.append(first(run, tolerance) if kind == "dlib" else run.certified(tolerance * best.dual))
    print(f"  dlib {way}: {len(run.w)} iterations, {run.calls[-1] / problem.n:.0f} passes, {run.seconds[-1]:.1f} s")
    if way.endswith("-0"):
        apart = disagreement(problem, lam, run)
        print(f"  objectives there and here at the same w: {apart:.1e} apart")
        if not apart <= AGREE:
            raise SystemExit(f"bench_dlib: expected the objectives to agree to {AGREE:g}: dlib solves another problem")
    for tolerance in tolerances:
        print(f"  to {tolerance:g}, CPU s:")
        for (solver, reached), seconds in {**theirs, **ours}.items():
            if reached == tolerance:
                ratio = min(theirs["dlib", tolerance]) / min(seconds)
                print(f"    {solver:18} {told(seconds)}" + (f": dlib {ratio:.1f} times" if solver in SOLVERS else ""))
    print(f"  load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("features", type=Path)
    parser.add_argument("--dlib", type=Path, required=True, help="folder of dlib's source")
    parser.add_argument("--flags", default="-O3 -march=native", help="of g++")
    parser.add_argument("--lambdas", nargs="+", default=["0.01"])
    parser.add_argument("--tolerances", nargs="+", type=float, default=[1e-2, 1e-3, 1e-4])
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU seconds after which dlib is ended")
    given = parser.parse_args()
    problem = open_problem(given.features, "train")
    print(f"{given.features.name}: n = {problem.n:,}, d = {problem.d:,}; g++ {given.flags}")
    with tempfile.TemporaryDirectory() as folder:
        oca = Oca(problem, given.dlib, given.flags, Path(folder))
        for name in given.lambdas:
            compare(problem, oca, name, given)


if __name__ == "__main__":
    main()
