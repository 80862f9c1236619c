"""Gapwise as its users start it: estimators with `lam="auto"`, and commands with `run.refit=true`."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gapwise.pipeline.practice.contest import GAMMAS, HELD_OUT, Asked, Contestant, Labels, Part, Setting, Tuned
from gapwise.pipeline.practice.contest import words as in_words
from gapwise.stages.datasets import DataError
from gapwise.stages.problems.matching import Matching
from gapwise.stages.problems.matching.metrics import chosen
from gapwise.stages.problems.ranking import Ranking, places_of

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


def by_estimator(says: str, make: Callable[..., Any], grid: Sequence[Setting] = ({},)) -> Contestant:
    """An estimator, `make(seed, **arguments)`, with its defaults but for the best setting of a `grid`.

    The loss of the held-out units at the lambda that they choose also chooses among several settings. The best one is
    then fitted with `lam="auto"`, which solves its path again.
    """

    def warm_up(asked: Asked) -> None:
        part = asked.data.train
        part = part.take(np.arange(0, len(part.x), max(1, min(TENTH, len(part.x) // 60))))
        _fitted(partial(make, **grid[0]), part, asked.seed).predict(
            asked.data.test.x[:2] if not isinstance(asked.data.test.x[0], np.ndarray) else asked.data.test.x[0]
        )

    def tune(asked: Asked) -> Tuned:
        losses = []
        for setting in grid if len(grid) > 1 else ():
            tried = _fitted(partial(make, **setting, lam="path"), asked.data.train, asked.seed)
            (index,) = np.flatnonzero(tried.path_["validated_lambda"].values == tried.lambda_)
            losses.append(float(tried.path_["validated_loss"].values[index]))
        best = grid[int(np.nanargmin(losses))] if losses else grid[0]
        model = _fitted(partial(make, **best), asked.data.train, asked.seed)
        model.save(asked.folder / "model")

        def predict(x: Sequence[Any]) -> Sequence[Labels]:
            if not isinstance(x[0], np.ndarray):
                labels: Sequence[Labels] = model.predict(x)
                return labels
            return np.split(model.predict(np.concatenate(x)), np.cumsum([len(unit) for unit in x])[:-1])

        chosen = in_words({**best, "lambda": float(f"{model.lambda_:.3g}")})
        return Tuned(predict, chosen, _size(asked.folder / "model"))

    return Contestant(says, tune, ours=True, warm_up=warm_up)


class Run(NamedTuple):
    """A command that was carried out."""

    folder: Path
    compiled: bool
    """whether it compiled anything, which later runs load"""
    seconds: float
    """of CPU"""


def command(words: Sequence[str], root: Path) -> Run:
    """Carry out a run in a process of its own. DataError if its data are not there."""
    before = _children()
    line = [sys.executable, "-m", "gapwise.pipeline", *words, f"run.root={root}", "tracking=none", "compute=serial"]
    done = subprocess.run(line, capture_output=True, text=True)
    runs = [text[5:] for text in done.stdout.splitlines() if text.startswith("run: ")]
    if done.returncode or not runs:
        said = (done.stderr.strip().splitlines() or [""])[-1]
        raise (DataError if "dataset.root" in said else CommandError)(said.removeprefix("error: "))
    return Run(Path(runs[-1]), "compiling" in done.stderr, _children() - before)


def features_of(run: Path) -> Path:
    """The feature store of a run."""
    return Path(json.loads((run / "manifest.json").read_text())["stages"]["featurize"]["path"])


def by_command(says: str, words: Sequence[str]) -> Contestant:
    """A run of the pipeline over the features of the task's store; what it takes after featurizing counts."""

    name = next(word for word in words if word.startswith("dataset=")).partition("=")[2]
    own = [*words, f"dataset.validation={HELD_OUT}", "run.refit=true"]

    def warm_up(asked: Asked) -> None:
        _begin_again(name, asked.folder.parent)
        command([*own, *asked.data.words, f"seed={asked.seed}", "run.until=featurize"], asked.folder.parent)

    def tune(asked: Asked) -> Tuned:
        from gapwise.stages.model.folders import save_model
        from gapwise.stages.model.predict import predict as decode
        from gapwise.stages.problems import build
        from gapwise.storage.features import open_features

        def solve() -> list[Run]:
            parts = ("run.until=evaluate", "run.stage=refit")
            words = [*own, *asked.data.words, f"seed={asked.seed}"]
            return [command([*words, part], asked.folder.parent) for part in parts]

        runs = solve()
        if any(run.compiled for run in runs):
            warm_up(asked)
            runs = solve()
        folder = runs[-1].folder
        model = save_model(folder, "best", asked.folder / "model")
        store = open_features(features_of(folder))

        def predict(x: Sequence[Any]) -> Sequence[Labels]:
            problem = build(store.meta["structure"], store.arrays("test"), store.meta)
            labels, _ = decode(problem, model.weights)
            return _by_unit(problem, labels)[: len(x)]  # with practice.size=tiny fewer are asked for

        seconds = sum(run.seconds for run in runs)
        return Tuned(predict, f"lambda = {model.lambda_:.3g}", _size(asked.folder / "model"), extra_seconds=seconds)

    return Contestant(says, tune, ours=True, warm_up=warm_up)


def _by_unit(problem: Any, labels: np.ndarray) -> list[Labels]:
    """Decoded labels as the figures take them: links of word pairs, places of documents, labels of rows."""
    if isinstance(problem, Matching):
        block, pair = chosen(problem, labels)
        return [{tuple(link) for link in pair[block == i].tolist()} for i in range(problem.n)]
    if isinstance(problem, Ranking):
        return [places_of(problem, labels, i) for i in range(problem.n)]
    return [labels[a:b].astype(int) for a, b in pairwise(problem.label_ptr.tolist())]


def _begin_again(name: str, root: Path) -> None:
    """Remove the runs of a data set, not its features: one that goes on would not count what it did before."""
    for former in root.glob(f"{name}-*"):
        shutil.rmtree(former)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _chain(**given: Any) -> Contestant:
    """A `ChainSVM` with these arguments."""

    def make(seed: int) -> Any:
        from gapwise import ChainSVM

        return ChainSVM(random_state=seed, **given)

    shown = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return by_estimator(f"Gapwise, ChainSVM({shown})", make)


def _multiclass(seed: int, **given: Any) -> Any:
    from gapwise import MulticlassSVM

    return MulticlassSVM(random_state=seed, **given)


CHAIN, CHAIN_BIO = _chain(), _chain(constraints="bio")
MULTICLASS = by_estimator("Gapwise, MulticlassSVM()", _multiclass)
RBF = by_estimator(
    "Gapwise, MulticlassSVM(kernel='rbf')", partial(_multiclass, kernel="rbf"), [{"gamma": gamma} for gamma in GAMMAS]
)
