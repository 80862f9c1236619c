"""One contestant on one split of a task, in a process of its own: python -m gapwise.pipeline.practice.measure TASK WHO …"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import numpy as np

from gapwise.pipeline.errors import FAILED, refuse
from gapwise.pipeline.practice.contest import Asked, Judge
from gapwise.pipeline.practice.ours import CommandError
from gapwise.pipeline.practice.table import SIZES, TASKS
from gapwise.pipeline.source_code import commit
from gapwise.records import Record
from gapwise.stages.datasets import DataError
from gapwise.storage.files import write_json

NO_DATA = 3
"""Exit code if the data of the task are not there."""
RESAMPLES = 1000
LEAST = 3
"""Predictions, of which the fastest counts."""
SHORT = 20.0
"""CPU seconds below which prediction is repeated."""
BRIEF, MANY = 0.05, 20
"""CPU seconds below which so many predictions are timed together: clocks of processors may tick in hundredths."""


def resampled(judge: Judge, counts: np.ndarray, seed: int = 0) -> dict[str, float]:
    """Standard errors of the figures, from bootstrap samples of the units."""
    n = len(counts)
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1.0 / n), RESAMPLES) @ counts
    return {figure.name: float(np.std([figure.of(sums) for sums in drawn], ddof=1)) for figure in judge.figures}


T = TypeVar("T")


def seconds_of(call: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and its CPU seconds."""
    begun = time.process_time()
    result = call()
    return result, time.process_time() - begun


def fastest_of(call: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and the CPU seconds of its fastest repetition."""
    result, used = seconds_of(call)
    if used >= SHORT:
        return result, used
    count = MANY if used < BRIEF else 1
    return result, min(seconds_of(lambda: [call() for _ in range(count)])[1] / count for _ in range(LEAST))


def measure(name: str, who: str, split: int, size: str, root: Path, limit: float, seed: int = 0) -> Record:
    """The record of one contestant on one split."""
    task = TASKS[name]
    contestant = task.contestants[who]
    data = task.load(root, size, split)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as folder:
        asked = Asked(data, task.judge, seed, limit, Path(folder))
        contestant.missing()  # imports
        contestant.warm_up(asked)
        tuned, seconds = seconds_of(lambda: contestant.tune(asked))
        predicted, fastest = fastest_of(lambda: tuned.predict(data.test.x))
    counts = task.judge.table(data.test, predicted)
    return {
        "task": name, "who": who, "says": contestant.says, "ours": contestant.ours, "split": split, "seed": seed,
        "figures": {figure.name: figure.of(counts.sum(axis=0)) for figure in task.judge.figures},
        "resampled": resampled(task.judge, counts),
        "seconds": seconds + tuned.extra_seconds, "predict_seconds": fastest, "bytes": tuned.size,
        "setting": tuned.setting, "note": tuned.note, "units": len(data.test.x), "load": round(os.getloadavg()[0], 1),
        "day": f"{datetime.now(UTC):%Y-%m-%d}", "source": commit(),
    }  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=list(TASKS))
    parser.add_argument("who")
    parser.add_argument("split", type=int)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("root", type=Path, help="folder of runs and features")
    parser.add_argument("limit", type=float, help="CPU seconds for tuning")
    parser.add_argument("record", type=Path, help="the JSON file to write")
    asked = parser.parse_args(given)
    end = int(3 * asked.limit) + 300
    resource.setrlimit(resource.RLIMIT_CPU, (end, end))
    try:
        write_json(asked.record, measure(asked.task, asked.who, asked.split, asked.size, asked.root, asked.limit))
    except DataError as error:
        sys.exit(refuse(error, NO_DATA))
    except (ValueError, OSError, MemoryError, CommandError) as error:
        sys.exit(refuse(error, FAILED))


if __name__ == "__main__":
    main()
