"""Gapwise beside python-crfsuite on the same attributes: training time and test scores, measured in one run.

    pip install -e ".[bench]"
    python tests/benchmarks/bench_crfsuite.py [folder of the data sets] [--tasks ocr_small ocr_large conll]

CRFsuite gets the ids that the readers compute, biases included, as attribute strings, and trains by L-BFGS with c2 = 1
and its other defaults. Its objective is the sum of negative log-likelihoods + c2 ||w||^2, ours lambda/2 ||w||^2 + the
mean hinge: c2 = 1 corresponds to lambda = 2/n. By default it has a weight for every pair of
attribute and label that occurs in training; we have one for every pair.

Seconds are those of training alone, without reading, featurizing or loading compiled code. "prepare" is what each side needs
before: CRFsuite its items, we the Gram matrices. One core each; training that takes less than a few seconds is
repeated, and the run with the least CPU time counts. One of ours that reaches its limit of CPU seconds is stopped, and
its gap says how far it got. Neither lambda nor c2 is tuned.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support"), str(Path(__file__).resolve().parents[2])]

from memory_sink import read  # noqa: E402

from gapwise.stages.datasets import open_dataset  # noqa: E402
from gapwise.stages.model.predict import predict  # noqa: E402
from gapwise.stages.problems import build  # noqa: E402
from gapwise.stages.problems.chain import Chain, metrics  # noqa: E402
from gapwise.stages.solver.exact import exact_pass  # noqa: E402
from gapwise.stages.solver.methods import method_options  # noqa: E402
from gapwise.stages.solver.options import CacheOptions, MethodOptions, PathOptions, Status  # noqa: E402
from gapwise.stages.solver.path.walk import begin  # noqa: E402

TASKS = {
    "ocr_small": ("ocr", {"root": "ocr", "size": "small"}, (0.1, 0.01, None)),
    "ocr_large": ("ocr", {"root": "ocr", "size": "large"}, (0.1, 0.01, None)),
    "conll": ("conll", {"root": "conll2000"}, (None,)),
}
"""Reader, its options, and the lambdas; None is 1/n. 0.1 is near the best on test of the path over OCR-small."""
SOLVERS = {
    "accelerated": method_options(name="accelerated", method="accelerated", cache=CacheOptions("gap")),
    "bcpfw_gap_cache": method_options(cache=CacheOptions("gap")),
}
SHORT = 5.0
"""CPU seconds below which a training is repeated."""


@dataclass
class Trained:
    """One training: seconds of CPU and of the wall clock, flat test labels, and how it ended."""

    cpu: float
    wall: float
    labels: np.ndarray
    note: str


def timed(train: Callable[[], Any]) -> tuple[Any, float, float]:
    """(result, CPU seconds, wall seconds)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = train()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def items(problem: Chain) -> list[list[list[str]]]:
    """Every token's attributes as strings, sequence by sequence."""
    names = [str(number) for number in range((problem.d - problem.labels**2) // problem.labels)]
    ids, row = problem.tokens.ids.tolist(), problem.tokens.row_ptr.tolist()
    return [
        [[names[j] for j in ids[row[t] : row[t + 1]]] for t in range(first, last)]
        for first, last in pairwise(problem.label_ptr.tolist())
    ]


def crfsuite(train: Chain, given: list[list[list[str]]], test: list[list[list[str]]]) -> Trained:
    """L-BFGS, c2 = 1."""
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c1": 0.0, "c2": 1.0}, verbose=False)
    for sequence, (first, last) in zip(given, pairwise(train.label_ptr), strict=True):
        trainer.append(sequence, [str(label) for label in train.truth[first:last]])
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        _, cpu, wall = timed(lambda: trainer.train(model))
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        labels = np.array([int(label) for sequence in test for label in tagger.tag(sequence)])
        tagger.close()
    last = trainer.logparser.last_iteration
    return Trained(cpu, wall, labels, f"{last['num']} iterations, {last['active_features']:,} weights")


def gapwise(train: Chain, test: Chain, options: MethodOptions, lam: float, tolerance: float, most: float) -> Trained:
    """One lambda to gap / dual <= tolerance, or for `most` CPU seconds."""
    path = PathOptions(rule="single", lam=lam, tolerance=tolerance, relative=True)
    solver = begin(train, options, path, None, 0)
    solver.warm_up()
    end = time.process_time() + most

    def boundary(_: Any) -> Status | None:
        return Status.TIME_LIMIT if time.process_time() > end else None

    (status, point), cpu, wall = timed(lambda: solver.solve(tolerance, boundary, relative=True))
    passes = solver.ledger.passes_here  # the exact pass below, where there is one, only tells how far it came
    if point is None:
        point, _ = exact_pass(solver.it, solver.point)
    labels, _ = predict(test, np.ascontiguousarray(solver.primal()))
    return Trained(cpu, wall, labels, f"gap/dual {point.gap / point.dual:.2g}, {passes:.0f} passes, {status}")


def least(train: Callable[[], Trained], repetitions: int = 3) -> Trained:
    """The run with the least CPU time; a long one is not repeated."""
    runs = [train()]
    while len(runs) < repetitions and runs[0].cpu < SHORT:
        runs.append(train())
    return min(runs, key=lambda run: run.cpu)


def compare(task: str, data: Path, tolerance: float, most: float, solvers: list[str]) -> None:
    """The table of one task."""
    name, options, lambdas = TASKS[task]
    sink, meta = read(open_dataset(name, {**options, "root": data / options["root"]}))
    arrays = sink.arrays("train")
    bare = {key: value for key, value in arrays.items() if not key.startswith("gram")}
    train, grams, _ = timed(lambda: build("chain", bare, meta))
    test = build("chain", sink.arrays("test"), meta)
    given, handing, _ = timed(lambda: items(train))
    asked = items(test)
    print(
        f"\n{task}: {train.n:,} training sequences ({train.truth.size:,} tokens), {test.n:,} of test, {train.labels} "
        f"labels, d = {train.d:,}; prepare: CRFsuite {handing:.1f} s, ours {grams:.1f} s; "
        f"load {os.getloadavg()[0]:.1f}"
    )
    scores = ("token_error", "sequence_error", "chunk_f1")
    shown = [score for score in scores if score in metrics(test, sink.arrays("test"), test.truth)]
    print(f"  {'':<32}{'CPU s':>8}{'wall s':>8}" + "".join(f"{score:>16}" for score in shown) + "  how it ended")

    def row(label: str, run: Trained) -> None:
        losses = metrics(test, sink.arrays("test"), run.labels)
        numbers = "".join(f"{losses[score]:>16.4f}" for score in shown)
        print(f"  {label:<32}{run.cpu:>8.2f}{run.wall:>8.2f}{numbers}  {run.note}", flush=True)

    row("CRFsuite l-bfgs, c2 = 1", least(lambda: crfsuite(train, given, asked)))
    for lam in lambdas:
        for solver in solvers:
            value, text = (1.0 / train.n, "1/n") if lam is None else (lam, f"{lam:g}")
            choice = SOLVERS[solver]
            run = least(lambda choice=choice, value=value: gapwise(train, test, choice, value, tolerance, most))
            row(f"{solver}, lambda = {text}", run)


def main() -> None:
    here = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, default=Path(os.environ.get("GAPWISE_DATA", here)))
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--solvers", nargs="+", choices=list(SOLVERS), default=list(SOLVERS))
    parser.add_argument("--tolerance", type=float, default=1e-2, help="of gap / dual")
    parser.add_argument("--max-seconds", type=float, default=300.0, help="CPU seconds for one training of ours")
    args = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; "
        f"python-crfsuite {version('python-crfsuite')}; gap/dual <= {args.tolerance:g}"
    )
    for task in args.tasks:
        folder = args.data / TASKS[task][1]["root"]
        if folder.is_dir():
            compare(task, args.data, args.tolerance, args.max_seconds, args.solvers)
        else:
            print(f"\n{task}: skipped, there is no {folder}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nload {os.getloadavg()[0]:.1f} at the end; peak memory of the whole run {peak:.1f} GB")


if __name__ == "__main__":
    main()
