"""What practitioners use beside Gapwise, everybody tuned in the same way: `python tests/benchmarks/practice FOLDER`.

A fifth of the training units chooses the settings (GridSearchCV with a PredefinedSplit), and all of them train the model
again. Everybody goes to the end of the grid, on every fold. Each contestant on each fold is a process of its own and leaves
a JSON file in FOLDER/TASK; what has one is not measured again, so the same command goes on after a kill. FOLDER/PRACTICE.md
and practice.json are made again after each. `--tiny` tries the machinery on 60 units.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from ours import HELD_OUT, Command, seconds_of_commands
from page import written
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from tasks import TASKS, Contestant, Data, Task

from gapwise.pipeline.source_code import commit
from gapwise.stages.datasets import DataError

TINY = 60
MISSING = 3
"""Exit code if the data of a task, or a package, are not there."""
CLOCK = 0.5
"""CPU seconds of predictions that are timed together, as clocks of processors may tick in hundredths."""
T = TypeVar("T")


def seconds_of(call: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and its CPU seconds, those of its processes too."""
    begun = time.process_time() + seconds_of_commands()
    result = call()
    return result, time.process_time() + seconds_of_commands() - begun


def tuned(model: Any, contestant: Contestant, task: Task, data: Data) -> tuple[Any, dict[str, Any]]:
    """The model trained on all units, with the settings that were best on a fifth, and those settings."""
    if contestant.grid is None:
        return model.fit(data.x, data.y), {}
    fold = np.full(len(data.x), -1)
    fold[np.random.default_rng(0).permutation(fold.size)[: round(HELD_OUT * fold.size)]] = 0
    search = GridSearchCV(
        model, contestant.grid, scoring=task.judge.score, cv=PredefinedSplit(fold), error_score="raise"
    )
    search.fit(data.x, data.y)
    return search.best_estimator_, search.best_params_


def _shown(setting: dict[str, Any]) -> str:
    flat = setting.get("params", setting)  # CRFsuite's settings are one argument
    return ", ".join(f"{name.removeprefix('model__')} = {value}" for name, value in flat.items())


def measured(name: str, who: str, fold: int, folder: Path, tiny: bool) -> dict[str, Any]:
    """The record of one contestant on one fold."""
    task, runs = TASKS[name], folder / "runs"
    contestant, data = task.contestants[who], task.load(runs, fold)
    data = data.first(TINY) if tiny else data
    model = contestant.model(data, runs)
    if isinstance(model, Command):  # compiles, too, so that neither is counted
        model.featurize()
        model.fit(data.x, data.y)
        model.featurize()
    else:
        contestant.model(data, runs).fit(data.x[:TINY], data.y[:TINY])
    (model, setting), seconds = seconds_of(lambda: tuned(model, contestant, task, data))
    with tempfile.TemporaryDirectory() as scratch:
        size = model.size_in(Path(scratch)) if hasattr(model, "size_in") else len(pickle.dumps(model))
    predicted, once = seconds_of(lambda: model.predict(data.test_x))
    times = max(1, min(100, round(CLOCK / max(once, 1e-3))))
    fastest = min(seconds_of(lambda: [model.predict(data.test_x) for _ in range(times)])[1] / times for _ in range(3))
    counts = task.judge.table([truth for _, truth in data.test_y], predicted)
    return {
        "figures": {figure.name: figure.of(counts.sum(axis=0)) for figure in task.judge.figures},
        "resampled": task.judge.resampled(counts),
        "seconds": seconds, "predict_seconds": fastest, "bytes": size, "setting": _shown(setting or model.setting_),
        "load": round(os.getloadavg()[0], 1), "day": f"{datetime.now(UTC):%Y-%m-%d}", "source": commit(),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument(
        "--who", nargs="+", default=sorted({who for task in TASKS.values() for who in task.contestants})
    )
    parser.add_argument("--tiny", action="store_true", help="60 units of each part: no number means anything")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    folder = given.folder.absolute()
    if given.one:
        name, who, fold = given.one
        try:
            print(json.dumps(measured(name, who, int(fold), folder, given.tiny)))
        except (DataError, ImportError) as error:
            print(error, file=sys.stderr)
            return MISSING
        return 0
    failed = False
    for name in given.tasks:
        for who in (who for who in TASKS[name].contestants if who in given.who):
            for fold in range(1 if given.tiny else TASKS[name].folds):
                failed |= not _record(folder, name, who, fold, given.tiny)
                written(folder)
    print(folder / "PRACTICE.md")
    return int(failed)


def _record(folder: Path, name: str, who: str, fold: int, tiny: bool) -> bool:
    """Make the record if there is none, in a process of one thread; False if that failed."""
    file = folder / name / f"{who}-{fold}.json"
    if file.is_file():
        return True
    file.parent.mkdir(parents=True, exist_ok=True)
    print(f"{name}, {who}, fold {fold}", file=sys.stderr, flush=True)
    words = [sys.executable, str(Path(__file__).parent), str(folder), "--one", name, who, str(fold)]
    words += ["--tiny"] if tiny else []
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode:
        print(f"left out: {(done.stderr.strip().splitlines() or [''])[-1]}", file=sys.stderr, flush=True)
        return done.returncode == MISSING
    file.with_suffix(".part").write_text(done.stdout.splitlines()[-1] + "\n")
    file.with_suffix(".part").rename(file)
    return True


if __name__ == "__main__":
    sys.exit(main())
