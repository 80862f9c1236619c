"""The tasks: units with their truth through the readers of Gapwise, the figures of merit, and who takes part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import judges
import numpy as np
from ours import Command, Estimator, command, features_of
from peers import CRFsuite, Rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from gapwise import ChainSVM, MulticlassSVM
from gapwise.stages.datasets import Blocks, open_dataset
from gapwise.stages.problems.losses import VOID
from gapwise.storage.features import open_features

Grid = Mapping[str, Sequence[Any]]
GAMMAS = ("scale", 0.01, 0.003)
"""Of RBF kernels, ours and others'."""


class Data(NamedTuple):
    """One split. A unit's target is (labels to learn from, truth to compare with)."""

    x: Sequence[Any]
    y: Sequence[Any]
    test_x: Sequence[Any]
    test_y: Sequence[Any]

    def first(self, count: int) -> Data:
        """The first units of each part."""
        return Data(*(part[:count] for part in self))


class Contestant(NamedTuple):
    """Someone who takes part: a model for a split and a folder of runs, and the settings that are tried."""

    says: str
    model: Callable[[Data, Path], Any]
    grid: Grid | Sequence[Grid] | None = None
    """of scikit-learn's GridSearchCV; None: the model chooses its settings itself"""


@dataclass(frozen=True)
class Task:
    """A table of the page."""

    says: str
    tests: str
    load: Callable[[Path, int], Data]
    """load(folder of runs, fold)"""
    judge: judges.Judge
    contestants: Mapping[str, Contestant]
    folds: int = 1
    """10: those of the paper, each tested; 1: one test set, whose units are resampled"""
    remarks: str = ""


def _units(flat: Any, ptr: Any) -> list[np.ndarray]:
    return [np.asarray(flat)[a:b] for a, b in pairwise(np.asarray(ptr).tolist())]


def _read(name: str, **options: object) -> tuple[Blocks, Mapping[str, Any]]:
    reader = open_dataset(name, {"name": name, "root": None, **options})
    sink = Blocks(reader.structure)
    return sink, reader.featurize(sink, map, lambda *_: None)


def _tokens(name: str, **options: object) -> Data:
    """Sequences: tokens as lists of attributes by name, without our biases, and labels by name."""
    from gapwise.stages.datasets.text.vocabulary import read_vocabulary

    sink, meta = _read(name, **options)
    plain = int(meta["attributes"]) - 3
    names = list(read_vocabulary(sink.arrays("train"))) if "text" in meta else [f"p{k}" for k in range(plain)]
    labels = [str(label) for label in (*meta["label_names"], *meta.get("test_only_labels", ()))]
    parts: list[Sequence[Any]] = []
    for split in ("train", "test"):
        arrays = sink.arrays(split)
        edges = np.append(0, np.cumsum(arrays["counts"], dtype=np.int64))
        rows = [[names[k] for k in unit.tolist() if k < plain] for unit in _units(arrays["ids"], edges)]
        ptr = arrays["labels_ptr"].tolist()
        y = [[labels[k] for k in unit] for unit in _units(arrays["labels"], ptr)]
        parts += [[rows[a:b] for a, b in pairwise(ptr)], list(zip(y, y, strict=True))]
    return Data(*parts)


def _letters(size: str) -> Callable[[Path, int], Data]:
    return lambda runs, fold: _tokens("ocr", size=size, fold=fold)


def _digits(runs: Path, fold: int) -> Data:
    sink, _ = _read("usps")
    parts: list[Sequence[Any]] = []
    for split in ("train", "test"):
        arrays = sink.arrays(split)
        y = list(np.asarray(arrays["labels"]).reshape(-1, 1).astype(int))
        parts += [list(np.asarray(arrays["x"], np.float64)[:, None, :]), list(zip(y, y, strict=True))]
    return Data(*parts)


def _pictures(name: str) -> Callable[[Path, int], Data]:
    """Superpixels as (unary features, pixels), with the pixels of each class as truth; void has no label."""

    def load(runs: Path, fold: int) -> Data:
        run = command([f"dataset={name}", "run.until=featurize"], runs)
        features, parts = open_features(features_of(run)), []
        for split in ("train", "test"):
            arrays = features.arrays(split)
            area = _units(arrays["area"], arrays["area_ptr"])
            labels = [unit.tolist() for unit in _units(arrays["labels"], arrays["labels_ptr"])]
            if "counts" in arrays:
                truth = _units(arrays["counts"], arrays["counts_ptr"])
                labels = [[None if k == VOID else k for k in unit] for unit in labels]
            else:
                own = _units(arrays["foreground"], arrays["foreground_ptr"])
                truth = [np.stack([whole - part, part], axis=1) for whole, part in zip(area, own, strict=True)]
            x = zip(_units(arrays["unary"], arrays["unary_ptr"]), area, strict=True)
            parts += [list(x), list(zip(labels, truth, strict=True))]
        return Data(*parts)

    return load


def _rows(says: str, model: Any, grid: Grid) -> Contestant:
    return Contestant(says, lambda data, runs: Rows(model), {f"model__{name}": values for name, values in grid.items()})


def _crfsuite(says: str, algorithm: str, params: Sequence[Mapping[str, float]]) -> Contestant:
    return Contestant(f"CRFsuite, {says}", lambda data, runs: CRFsuite(algorithm), {"params": params})


def _estimator(says: str, make: Callable[[], Any], gammas: Sequence[object] = ()) -> Contestant:
    return Contestant(f"Gapwise, {says}", lambda data, runs: Estimator(make(), gammas))


def _command(says: str, *words: str) -> Contestant:
    return Contestant(f"Gapwise, {says}", lambda data, runs: Command(words, runs))


COSTS = (1.0, 0.1, 0.01, 10.0, 0.001)
LIBLINEAR = _rows("LIBLINEAR (LinearSVC)", LinearSVC(random_state=0), {"C": COSTS})
LOGISTIC = _rows("logistic regression", LogisticRegression(max_iter=200), {"C": COSTS})
FOREST = _rows(
    "random forest, 100 trees",
    RandomForestClassifier(n_estimators=100, random_state=0),
    {"min_samples_leaf": (1, 4, 16)},
)
CHAIN = _estimator("ChainSVM()", lambda: ChainSVM(random_state=0))
TOKENS = {
    "crfsuite_lbfgs": _crfsuite(
        "l-bfgs", "lbfgs",
        [*({"c2": c2} for c2 in (1.0, 0.3, 3.0, 0.1, 10.0, 0.03)), *({"c1": 0.1, "c2": c2} for c2 in (0.1, 1.0))],
    ),
    "crfsuite_ap": _crfsuite("averaged perceptron", "ap", [{"max_iterations": k} for k in (100, 30, 10, 5)]),
    "crfsuite_pa": _crfsuite(
        "passive-aggressive", "pa", [{"c": c, "max_iterations": k} for k in (100, 10) for c in (1.0, 0.1, 0.01)]
    ),
    "liblinear": LIBLINEAR,
    "logistic": LOGISTIC,
}  # fmt: skip
SUPERPIXELS = {"liblinear": LIBLINEAR, "logistic": LOGISTIC, "forest": FOREST}

TASKS = {
    "ocr_small": Task(
        "OCR, small", "10 folds of the paper: one trains, nine test", _letters("small"),
        judges.LETTERS, {"gapwise": CHAIN, **TOKENS}, folds=10,
        remarks="dlib has no wheel and takes a compiler; `bench_dlib.py` compares it, with the same objective, by seconds.",
    ),
    "usps": Task(
        "USPS digits", "2,007 test digits", _digits, judges.ERROR,
        {
            "gapwise": _estimator("MulticlassSVM()", lambda: MulticlassSVM(random_state=0)),
            "gapwise_rbf": _estimator(
                "MulticlassSVM(kernel='rbf')", lambda: MulticlassSVM(kernel="rbf", random_state=0), GAMMAS
            ),
            "liblinear": LIBLINEAR, "logistic": LOGISTIC, "forest": FOREST,
            "svc": _rows("SVM with RBF kernel (SVC)", SVC(), {"C": (1.0, 10.0, 100.0), "gamma": GAMMAS}),
        },
        remarks="SVC has a problem for each pair of digits, ours one for all ten.",
    ),
    "conll": Task(
        "CoNLL-2000, chunking", "2,012 test sentences", lambda runs, fold: _tokens("conll"), judges.CHUNKS,
        {
            "gapwise": CHAIN,
            "gapwise_bio": _estimator("ChainSVM(constraints='bio')", lambda: ChainSVM(constraints="bio", random_state=0)),
            **TOKENS,
        },
    ),
    "weizmann": Task(
        "Weizmann horses", "181 test pictures; IoU of all pixels together", _pictures("weizmann"), judges.HORSES,
        {
            "gapwise": _command("dataset=weizmann", "dataset=weizmann"),
            "gapwise_pixels": _command("dataset.loss=per_image", "dataset=weizmann", "dataset.loss=per_image"),
            **SUPERPIXELS,
        },
        remarks="The default loss counts both classes of a picture alike; `per_image` counts pixels.",
    ),
    "ocr_large": Task(
        "OCR, large", "10 folds of the paper: nine train, one tests", _letters("large"),
        judges.LETTERS, {"gapwise": CHAIN, **TOKENS}, folds=10,
    ),
    "msrc": Task(
        "MSRC, 21 classes", "256 test pictures", _pictures("msrc"), judges.CLASSES,
        {"gapwise": _command("dataset=msrc", "+experiment=regpath_stanford", "dataset=msrc"), **SUPERPIXELS},
    ),
}  # fmt: skip
