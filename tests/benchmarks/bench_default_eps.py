"""How fine a path lambda is chosen on: test figures and CPU seconds of estimators with `lam="auto"`, by eps.

    GAPWISE_DATA=DATA python tests/benchmarks/bench_default_eps.py [--tasks conll_500 usps conll] [--eps 0.1 0.05 0.02]

CoNLL-2000 (its first 500 sentences, or all) and USPS with three seeds, which choose the held-out fifth, OCR-small on its
first three folds. A row is the mean of the three; seconds are those of `fit` on one core, verify included.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gapwise import ChainSVM, MulticlassSVM
from gapwise.pipeline.practice.contest import Data
from gapwise.pipeline.practice.table import TASKS

NAMES = {"conll_500": "conll", "ocr_small": "ocr_small", "usps": "usps", "conll": "conll"}
"""Rows of the comparison, `pipeline/practice/table.py`."""
FEW, SEEDS = 500, 3


def runs(task: str, root: Path) -> list[tuple[Data, int]]:
    """Data and seeds."""
    task_of = TASKS[NAMES[task]]
    if task_of.folds > 1:
        return [(task_of.load(root, "full", fold), 0) for fold in range(SEEDS)]
    data = task_of.load(root, "full", 0)
    if task == "conll_500":
        data = data._replace(train=data.train.take(np.arange(FEW)))
    return [(data, seed) for seed in range(SEEDS)]


def fitted(task: str, data: Data, seed: int, eps: float, solver: str) -> tuple[Any, np.ndarray, float]:
    """The model, the sums of its counts on test, and the CPU seconds of its fit."""
    x, y, test = data.train.x, data.train.y, data.test.x
    make: Any = MulticlassSVM if task == "usps" else ChainSVM
    if task == "usps":
        x, y, test = (np.concatenate(whole) for whole in (x, y, test))
    begun = time.process_time()
    model = make(eps=eps, random_state=seed, solver=solver).fit(x, y)
    seconds = time.process_time() - begun
    predicted = model.predict(test).reshape(-1, 1) if task == "usps" else model.predict(test)
    return model, TASKS[NAMES[task]].judge.table(data.test, predicted).sum(axis=0), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=[*NAMES], default=[*NAMES][:-1])
    parser.add_argument("--eps", nargs="+", type=float, default=[0.1, 0.05, 0.02, 0.01])
    parser.add_argument("--solver", default="auto")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"load {os.getloadavg()[0]:.1f}\n| task | eps | figures | λ | CPU s |\n|---|---|---|---|---|")
    for task in asked.tasks:
        with tempfile.TemporaryDirectory() as root:
            given = runs(task, Path(root))
        fitted(
            task, given[0][0]._replace(train=given[0][0].train.take(np.arange(100))), 0, 1.0, asked.solver
        )  # compiles
        for eps in asked.eps:
            models, sums, seconds = zip(*(fitted(task, *run, eps, asked.solver) for run in given), strict=True)
            figures = [
                f"{figure.name} {np.mean([figure.of(row) for row in sums]):.4f}"
                for figure in TASKS[NAMES[task]].judge.figures
            ]
            lams = ", ".join(f"{model.lambda_:.3g}" for model in models)
            print(f"| {task} | {eps:g} | {', '.join(figures)} | {lams} | {np.mean(seconds):.2f} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
