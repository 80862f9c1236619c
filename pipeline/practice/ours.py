"""Gapwise as its users start it: estimators with `lam="auto"`, and commands with `run.refit=true`."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gapwise.pipeline.practice.contest import HELD_OUT, Asked, Contestant, Labels, Part, Tuned
from gapwise.stages.datasets import DataError

TENTH = 10


class CommandError(RuntimeError):
    """A run of the pipeline that failed, with what it said last."""


def _fitted(make: Callable[[int], Any], part: Part, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    x, y = (part.x, part.y) if not isinstance(part.x[0], np.ndarray) else map(np.concatenate, (part.x, part.y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # a lambda at the edge is told in the record
        return make(seed).fit(x, y)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def by_estimator(says: str, make: Callable[[int], Any]) -> Contestant:
    """An estimator with its defaults; `make(seed)` makes it."""

    def warm_up(asked: Asked) -> None:
        part = asked.data.train
        _fitted(make, part.take(np.arange(0, len(part.x), max(1, min(TENTH, len(part.x) // 60)))), asked.seed).predict(
            asked.data.test.x[:2] if not isinstance(asked.data.test.x[0], np.ndarray) else asked.data.test.x[0]
        )

    def tune(asked: Asked) -> Tuned:
        model = _fitted(make, asked.data.train, asked.seed)
        model.save(asked.folder / "model")

        def predict(x: Sequence[Any]) -> Sequence[Labels]:
            if not isinstance(x[0], np.ndarray):
                labels: Sequence[Labels] = model.predict(x)
                return labels
            return np.split(model.predict(np.concatenate(x)), np.cumsum([len(unit) for unit in x])[:-1])

        return Tuned(predict, f"lambda = {model.lambda_:.3g}", _size(asked.folder / "model"))

    return Contestant(says, tune, ours=True, warm_up=warm_up)


def command(words: Sequence[str], root: Path) -> Path:
    """Carry out a run in a process of its own; returns its directory. DataError if its data are not there."""
    line = [sys.executable, "-m", "gapwise.pipeline", *words, f"run.root={root}", "tracking=none", "compute=serial"]
    done = subprocess.run(line, capture_output=True, text=True)
    found = [text[5:] for text in done.stdout.splitlines() if text.startswith("run: ")]
    if done.returncode or not found:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        raise (DataError if "dataset.root" in said else CommandError)(said.removeprefix("error: "))
    return Path(found[-1])


def features_of(run: Path) -> Path:
    """The feature store of a run."""
    return Path(json.loads((run / "manifest.json").read_text())["stages"]["featurize"]["path"])


def by_command(says: str, words: Sequence[str]) -> Contestant:
    """A run of the pipeline over the features of the task's store; what it takes after featurizing counts."""

    def warm_up(asked: Asked) -> None:
        root = asked.folder.parent
        for former in root.glob(f"{_name(words)}-*"):
            shutil.rmtree(former)
        command([*_all(words), "run.until=featurize"], root)

    def tune(asked: Asked) -> Tuned:
        from gapwise.stages.models import save_model
        from gapwise.stages.predict import predict as decode
        from gapwise.stages.problems import build
        from gapwise.storage.features import open_features

        before = _children()
        for last in ("run.until=evaluate", "run.stage=refit"):
            run = command([*_all(words), last, f"seed={asked.seed}"], asked.folder.parent)
        seconds = _children() - before
        model = save_model(run, "best", asked.folder / "model")
        store = open_features(features_of(run))

        def predict(x: Sequence[Any]) -> Sequence[Labels]:
            problem = build(store.meta["structure"], store.arrays("test"), store.meta)
            labels, _ = decode(problem, model.weights)
            if store.meta["structure"] == "matching":
                from gapwise.stages.problems.matching.metrics import chosen

                block, pair = chosen(problem, labels)
                return [{tuple(link) for link in pair[block == i].tolist()} for i in range(problem.n)]
            labels = labels.astype(int)
            return [labels[a:b] for a, b in pairwise(problem.label_ptr.tolist())]

        said = json.loads((run / "result.json").read_text()) if (run / "result.json").is_file() else {}
        note = str(said.get("status", ""))
        return Tuned(predict, f"lambda = {model.lambda_:.3g}", _size(asked.folder / "model"), note, seconds)

    return Contestant(says, tune, ours=True, warm_up=warm_up)


def _all(words: Sequence[str]) -> list[str]:
    return [*words, f"dataset.validation={HELD_OUT}", "run.refit=true"]


def _name(words: Sequence[str]) -> str:
    return next(word for word in words if word.startswith("dataset=")).partition("=")[2]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _chain(constraints: str | None) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from gapwise import ChainSVM

        return ChainSVM(random_state=seed, constraints=constraints)

    return make


def _multiclass(seed: int) -> Any:
    from gapwise import MulticlassSVM

    return MulticlassSVM(random_state=seed)


CHAIN = by_estimator("Gapwise, ChainSVM()", _chain(None))
CHAIN_BIO = by_estimator('Gapwise, ChainSVM(constraints="bio")', _chain("bio"))
MULTICLASS = by_estimator("Gapwise, MulticlassSVM()", _multiclass)
