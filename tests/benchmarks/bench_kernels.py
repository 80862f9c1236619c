"""Kernels on USPS: two digits beside LIBSVM; all ten within budgets of memory.

    python tests/benchmarks/bench_kernels.py DATA svc            # 3 against 8: objective, decision values, test error
    python tests/benchmarks/bench_kernels.py DATA budget 200     # ten digits, rows of at most 200 MB: CPU, peak memory

DATA is the folder that holds `usps`. One budget a process, because a process's peak memory only rises.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from gapwise.stages.problems import build
from gapwise.stages.solve import Task, solve
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import CacheOptions, PathOptions
from gapwise.storage.results import read_path


def digits(data: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Grey values and digits of a split."""
    with np.load(data / "usps" / "usps.npz", allow_pickle=False) as archive:
        return (archive[f"X_{split}"] / 1000.0).astype(np.float32), archive[f"y_{split}"].astype(np.uint8)


def problem_of(x: np.ndarray, labels: np.ndarray, classes: int, gamma: float):
    """RBF kernel."""
    arrays = {"x": x, "points": x, "labels": labels, "row": np.arange(len(x))}
    return build("multiclass", arrays, {"classes": classes, "kernel": "rbf", "gamma": gamma})


def solved(problem, method: str, path: PathOptions) -> tuple[dict[str, np.ndarray], float]:
    """The arrays of path.zarr, and seconds of CPU."""
    step = {} if method == "accelerated" else {"step": "pairwise"}
    options = method_options(method, cache=CacheOptions(kind="gap"), max_passes=4000.0, **step)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        solve(Task(problem, options, path), Path(folder), key="k")
        return dict(read_path(Path(folder) / "path.zarr")[0]), time.process_time() - began


def svc(data: Path, pair: tuple[int, int] = (3, 8), gamma: float = 0.01, C: float = 5.0) -> None:
    """Beside sklearn's SVC, whose offset the reflected copy of each example makes 0; without the copies, its test error."""
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    x, y = digits(data, "train")
    x, y = x[np.isin(y, pair)].astype(np.float64), y[np.isin(y, pair)]
    n, sign = len(x), np.where(y == pair[1], 1.0, -1.0)
    path = PathOptions(rule="single", lam=2.0 / (n * C), tolerance=1e-12)
    path_arrays, seconds = solved(problem_of(x, (sign > 0).astype(np.uint8), 2, gamma), "bcfw", path)
    K, beta = rbf_kernel(x, gamma=gamma), path_arrays["weights"][0][n : 2 * n]
    svm = SVC(kernel="precomputed", C=C / 2.0, tol=1e-10)
    svm.fit(np.block([[K, -K], [-K, K]]), np.concatenate([sign, -sign]))
    decision, alpha = svm.decision_function(np.hstack([K, -K])), np.zeros(2 * n)
    alpha[svm.support_] = svm.dual_coef_[0]
    theirs = alpha[:n] - alpha[n:]
    print(
        f"dual: ours {path_arrays['dual'][0] * n * C:.10f}, LIBSVM {np.abs(alpha).sum() - 0.5 * theirs @ K @ theirs:.10f}"
    )
    off = np.abs(decision - 2.0 * K @ beta).max()
    print(f"decision values differ by {off:.2g}, the largest is {np.abs(decision).max():.3g}; CPU {seconds:.1f} s")
    new, truth = digits(data, "test")
    new, truth = new[np.isin(truth, pair)], truth[np.isin(truth, pair)]
    ours = np.where(rbf_kernel(new, x, gamma=gamma) @ beta > 0.0, pair[1], pair[0])
    with_offset = SVC(gamma=gamma, C=C).fit(x, y).predict(new)
    print(f"test error: ours {np.mean(ours != truth):.4f}, LIBSVM with its offset {np.mean(with_offset != truth):.4f}")


def budget(data: Path, megabytes: str, gamma: float = 0.02) -> None:
    """Ten digits at one lambda to 2 % of the dual value."""
    os.environ["GAPWISE_KERNEL_MB"] = megabytes
    x, y = digits(data, "train")
    solved(problem_of(x[:50], y[:50], 10, gamma), "accelerated", PathOptions(rule="single", lam=0.1, tolerance=0.5))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    problem = problem_of(x, y, 10, gamma)
    path = PathOptions(rule="single", lam=1e-4, tolerance=0.02, relative=True)
    path_arrays, seconds = solved(problem, "accelerated", path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    asked, computed = problem.rows.kept.counts
    passes, gap, primal = (float(path_arrays[name][0]) for name in ("effective_passes", "gap", "primal"))
    print(
        f"{megabytes} MB: {len(problem.rows.kept.point):,} of {problem.n:,} rows kept, {computed:,} computed for {asked:,}"
    )
    print(
        f"{passes:.1f} passes, gap {gap:.2g} of {primal:.3g}; CPU {seconds:.1f} s; {before:,} MB before, {peak:,} at most"
    )


if __name__ == "__main__":
    folder, command, *more = sys.argv[1:]
    svc(Path(folder)) if command == "svc" else budget(Path(folder), *more)
