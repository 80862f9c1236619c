"""Gapwise as its users start it: estimators with `lam="auto"`, and commands with `run.refit=true`."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from gapwise.stages.datasets import DataError

HELD_OUT = 0.2
"""Share of the training units on which settings are chosen: the default of our estimators."""


class Estimator(BaseEstimator):
    """One of our estimators, which chooses λ itself; `gammas` are tried by the loss at the λ that each chooses."""

    def __init__(self, model: Any, gammas: Sequence[object] = ()) -> None:
        self.model = model
        self.gammas = gammas

    def fit(self, x: Sequence[Any], y: Sequence[Any]) -> Self:
        """Choose λ, and gamma, on a fifth of the units; train again on all."""
        self.flat_ = isinstance(x[0], np.ndarray)  # the units of a multiclass problem are its rows
        labels = [own for own, _ in y]
        given = (np.concatenate(x), np.concatenate(labels)) if self.flat_ else (x, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a lambda at the edge is told in the record
            losses = [_validated(self.model.set_params(gamma=gamma, lam="path").fit(*given)) for gamma in self.gammas]
            if losses:
                self.model.set_params(gamma=self.gammas[int(np.nanargmin(losses))], lam="auto")
            self.model.fit(*given)
        return self

    def predict(self, x: Sequence[Any]) -> Sequence[Any]:
        """Labels of each unit."""
        if self.flat_:
            return np.split(self.model.predict(np.concatenate(x)), np.cumsum([len(unit) for unit in x])[:-1])
        return self.model.predict(x)

    @property
    def setting_(self) -> dict[str, object]:
        """What was chosen."""
        gamma = {"gamma": self.model.gamma} if len(self.gammas) else {}
        return {**gamma, "lambda": float(f"{self.model.lambda_:.3g}")}

    def size_in(self, folder: Path) -> int:
        """Bytes of the saved model."""
        self.model.save(folder / "model")
        return _bytes(folder / "model")


def _validated(model: Any) -> float:
    path = model.path_
    (index,) = np.flatnonzero(path["validated_lambda"].values == model.lambda_)
    return float(path["validated_loss"].values[index])


class Command(BaseEstimator):
    """A run of the pipeline over the features of a data set; what it takes after featurizing counts."""

    def __init__(self, words: Sequence[str], root: Path) -> None:
        self.words = words
        self.root = root

    def featurize(self) -> None:
        """Make the features, from which `fit` begins. Earlier runs go: one that goes on would not count what it did."""
        name = next(word for word in self.words if word.startswith("dataset=")).partition("=")[2]
        for former in self.root.glob(f"{name}-*"):
            shutil.rmtree(former)
        command([*self._all, "run.until=featurize"], self.root)

    @property
    def _all(self) -> list[str]:
        return [*self.words, f"dataset.validation={HELD_OUT}", "run.refit=true", "seed=0"]

    def fit(self, x: Sequence[Any], y: Sequence[Any]) -> Self:
        """The whole command but for its report, in a process whose CPU seconds the caller counts."""
        self.run_ = command([*self._all, "run.until=refit"], self.root)
        return self

    def size_in(self, folder: Path) -> int:
        """Bytes of the saved model, with which `predict` goes on."""
        from gapwise.stages.model.folders import save_model
        from gapwise.stages.problems import build
        from gapwise.storage.features import open_features

        saved, store = save_model(self.run_, "best", folder / "model"), open_features(features_of(self.run_))
        self.weights_, self.setting_ = saved.weights, {"lambda": float(f"{saved.lambda_:.3g}")}
        self.problem_ = build(store.meta["structure"], store.arrays("test"), store.meta)
        return _bytes(folder / "model")

    def predict(self, x: Sequence[Any]) -> Sequence[Any]:
        """Labels of the first test units of the store."""
        from gapwise.stages.model.predict import predict

        labels = predict(self.problem_, self.weights_)[0]
        return [labels[a:b].astype(int) for a, b in pairwise(self.problem_.label_ptr.tolist())][: len(x)]


def command(words: Sequence[str], root: Path) -> Path:
    """The folder of a run, made in a process of its own. DataError if its data are not there."""
    line = [sys.executable, "-m", "gapwise.pipeline", *words, f"run.root={root}", "tracking=none", "compute=serial"]
    done = subprocess.run(line, capture_output=True, text=True)
    runs = [text[5:] for text in done.stdout.splitlines() if text.startswith("run: ")]
    if done.returncode or not runs:
        said = (done.stderr.strip().splitlines() or [""])[-1].removeprefix("error: ")
        raise (DataError if "dataset.root" in said else RuntimeError)(said)
    return Path(runs[-1])


def features_of(run: Path) -> Path:
    """The feature store of a run."""
    return Path(json.loads((run / "manifest.json").read_text())["stages"]["featurize"]["path"])


def seconds_of_commands() -> float:
    """CPU seconds of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
