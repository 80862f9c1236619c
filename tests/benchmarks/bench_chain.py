"""Speed of chains on the real OCR-large and CoNLL: one exact gap pass, and the parts of a step, on one core.

    python tests/benchmarks/bench_chain.py [folder of the data sets]

The lower bound counts the doubles that must pass from the nearest cache through an adder: every weight of every
attribute for the scores, every transition for Viterbi and twice for its copy into theta. The rate at which this core
sums doubles that lie in its first-level cache is measured in the same run. The smallest CPU time of several
repetitions counts, as the machine may be shared.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support"), str(Path(__file__).resolve().parents[2])]

from memory_sink import problems  # noqa: E402

from gapwise.stages.datasets import open_dataset  # noqa: E402
from gapwise.stages.problems.protocol import FAST, JIT, max_label_length, max_local_size  # noqa: E402


@njit(**JIT)
def gap_pass(problem, w, order, theta, y, parts):
    """Sum of all hinge terms; parts: 1 scores only, 2 and the oracle, 3 and its value."""
    scratch, total = problem.scratch(), 0.0
    for i in order:
        size = problem.local_ptr[i + 1] - problem.local_ptr[i]
        labelling = y[: problem.label_ptr[i + 1] - problem.label_ptr[i]]
        problem.scores(i, w, theta[:size])
        if parts > 1:
            total += problem.max_oracle(i, theta[:size], labelling, scratch)
        if parts > 2:
            total += problem.value(i, theta[:size], labelling)
    return total


@njit(**FAST)
def dot(a, b):
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(**JIT)
def steps(problem, w, mu, ell, last, order, lam, pairwise, theta, delta, parts):
    """Steps at the blocks of `order`: Frank-Wolfe, or towards the new labelling away from the last one."""
    scratch, n = problem.scratch(), problem.n
    label = np.empty(problem.longest, dtype=problem.truth.dtype)
    total = 0.0
    for i in order:
        a, b = problem.local_ptr[i], problem.local_ptr[i + 1]
        th, d, m = theta[: b - a], delta[: b - a], mu[a:b]
        old = last[problem.label_ptr[i] : problem.label_ptr[i + 1]]
        y = label[: old.size]
        problem.scores(i, w, th)
        loss = problem.max_oracle(i, th, y, scratch)
        if pairwise:
            change = loss - problem.loss(i, old)
            for j in range(d.size):
                d[j] = 0.0
            problem.add(i, old, -1.0, d)
        else:
            change = loss - ell[i]
            for j in range(d.size):
                d[j] = -m[j]
        problem.add(i, y, 1.0, d)
        slope = change + dot(th, d)
        if parts > 2:
            old[:] = y
        if slope <= 0.0 or parts < 2:
            total += slope
            continue
        curvature = problem.norm2(i, d)
        if curvature <= 0.0:
            continue
        gamma = min(1.0, lam * n * slope / curvature)
        total += gamma
        if parts < 3:
            continue
        for j in range(d.size):
            m[j] += gamma * d[j]
        ell[i] += gamma * change
        problem.push(i, -gamma / (lam * n), d, w)
    return total


@njit(**FAST)
def sum_of(x, repetitions):
    total = 0.0
    for _ in range(repetitions):
        for j in range(x.size):
            total += x[j]
        x[0] = total * 1e-300
    return total


def best(function, repetitions=7):
    """Smallest CPU time of several runs, in ms; the first, which compiles, does not count."""
    function()
    times = []
    for _ in range(repetitions):
        start = time.thread_time_ns()
        function()
        times.append(time.thread_time_ns() - start)
    return min(times) / 1e6


def bench(name, problem):
    n, K = problem.n, problem.labels
    rng = np.random.default_rng(0)
    theta, delta = np.empty(max_local_size(problem)), np.empty(max_local_size(problem))
    y = np.empty(max_label_length(problem), dtype=problem.truth.dtype)
    lam = 1.0 / n
    w, mu, ell, last = np.zeros(problem.d), np.zeros(problem.local_ptr[-1]), np.zeros(n), problem.truth.copy()
    for i in range(n):
        problem.add(i, problem.truth[problem.label_ptr[i] : problem.label_ptr[i + 1]], 1.0,
                    mu[problem.local_ptr[i] : problem.local_ptr[i + 1]])  # fmt: skip
    for _ in range(3):
        steps(problem, w, mu, ell, last, rng.permutation(n), lam, False, theta, delta, 3)
    everything = np.arange(n)
    scores, oracle, whole = (best(lambda p=p: gap_pass(problem, w, everything, theta, y, p)) for p in (1, 2, 3))
    lengths = np.diff(problem.label_ptr)
    emission, transition = problem.ids.size * K, int((lengths - 1).sum()) * K * K
    x = np.ones(1024)
    rate = x.size * 20_000 / best(lambda: sum_of(x, 20_000))
    bound_scores, bound_oracle = (emission + 2 * n * K * K) / rate, transition / rate
    streamed = (problem.ids.nbytes + problem.grams.values.nbytes + 8 * mu.size) / 1e6
    attributes = problem.ids.size / lengths.sum()
    print(f"\n{name}: n={n} T={lengths.mean():.1f} K={K} d={problem.d}, {attributes:.1f} attributes a token")
    print(f"  this core sums {rate / 1e6:.1f} doubles a ns")
    print(f"  ids, Gram matrices and mu: {streamed:.0f} MB, w {8e-6 * problem.d:.1f} MB")
    print("  exact gap pass, ms          measured  lower bound  reached")
    for part, ms, bound in (
        ("scores", scores, bound_scores),
        ("oracle", oracle - scores, bound_oracle),
        ("whole", whole, bound_scores + bound_oracle),
    ):
        print(f"    {part:<22} {ms:10.2f} {bound:12.2f} {bound / ms:8.0%}")
    for pairwise in (False, True):

        def run(parts, pairwise=pairwise):
            state = [w.copy(), mu.copy(), ell.copy(), last.copy()]
            order = np.random.default_rng(1)
            return best(lambda: steps(problem, *state, order.permutation(n), lam, pairwise, theta, delta, parts), 5)

        direction, norm, whole = run(1), run(2), run(3)
        kind = "pairwise-like" if pairwise else "Frank-Wolfe"
        parts = f"to the direction {direction:.2f}, norm {norm - direction:.2f}, update {whole - norm:.2f}"
        print(f"  {kind}: {whole:.2f} ms a pass, {1e3 * whole / n:.2f} us a step ({parts})")


def main():
    here = Path(__file__).resolve().parents[3] / "shared" / "data"
    root = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("GAPWISE_DATA", here))
    for name, options in (("ocr", {"root": root / "ocr", "size": "large"}), ("conll", {"root": root / "conll2000"})):
        if not Path(options["root"]).is_dir():
            print(f"{name}: skipped, there is no {options['root']}")
            continue
        bench(name, problems(open_dataset(name, options))[0])


if __name__ == "__main__":
    main()
