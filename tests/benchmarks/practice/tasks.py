"""The tasks: units with their truth through the readers of Gapwise, the figures of merit, and who takes part."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import judges
import numpy as np
from ours import Command, Estimator, command, features_of
from peers import CRFsuite, IBMModel, PairsSVM, Rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from gapwise import ChainSVM, MulticlassSVM
from gapwise.stages.datasets import Blocks, DataError, open_dataset
from gapwise.stages.problems.void import VOID
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
    text: Sequence[Any] = ()
    """unlabelled units, where a task has them"""

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


def _stored(words: Sequence[str], runs: Path) -> Any:
    """The feature store of a data set, made by the pipeline if it is not there."""
    return open_features(features_of(command([*words, "run.until=featurize"], runs)))


def _pictures(name: str) -> Callable[[Path, int], Data]:
    """Superpixels as (unary features, pixels), with the pixels of each class as truth; void has no label."""

    def load(runs: Path, fold: int) -> Data:
        features, parts = _stored([f"dataset={name}"], runs), []
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


def _alignments(runs: Path, fold: int) -> Data:
    """Pairs of sentences with the annotators' links, and 50,000 pairs of the parallel text at equal steps."""
    from gapwise.stages.datasets.alignment import tokens
    from gapwise.stages.datasets.alignment.links import read_pairs, word_pair

    features, parts = _stored(["dataset=hansards"], runs), []
    for split in ("train", "test"):
        arrays = features.arrays(split)
        links = [_units(arrays[name], arrays[f"{name}_ptr"]) for name in ("sure", "possible")]
        truth = [tuple({tuple(link) for link in kind.tolist()} for kind in pair) for pair in zip(*links, strict=True)]
        parts += [[word_pair(arrays, i) for i in range(len(truth))], list(zip(truth, truth, strict=True))]
    files = open_dataset("hansards", {"name": "hansards", "root": None}).files()
    plain = read_pairs(files["parallel_100k.en"], files["parallel_100k.fr"])
    text = [(tokens.english(" ".join(e)), tokens.french(" ".join(f))) for e, f in plain]
    return Data(*parts, text[:: max(1, len(text) // 50_000)])


LETOR = Path(os.environ.get("GAPWISE_DATA", "../shared/data")) / "letor"
QUERIES = ["dataset=ranking", f"dataset.file={LETOR}/train.txt", f"dataset.test_file={LETOR}/test.txt"]


def _queries(runs: Path, fold: int) -> Data:
    if missing := [name for name in ("train.txt", "test.txt") if not (LETOR / name).is_file()]:
        raise DataError(f"{LETOR}: there is no {missing[0]}; LETOR's files are its publisher's to give")
    features, parts = _stored(QUERIES, runs), []
    for split in ("train", "test"):
        arrays = features.arrays(split)
        relevance = _units(np.asarray(arrays["relevance"], float), arrays["x_ptr"])
        parts += [_units(arrays["x"], arrays["x_ptr"]), list(zip(relevance, relevance, strict=True))]
    return Data(*parts)


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
    "hansards": Task(
        "Hansards, word alignment", "347 hand-aligned test pairs; 137 train", _alignments, judges.ALIGNMENT,
        {
            "gapwise": _command("dataset=hansards", "+experiment=regpath_hansards", "dataset=hansards"),
            "ibm_1": Contestant(
                "IBM Model 1 (nltk), both directions", lambda data, runs: IBMModel(data.text, judges.ALIGNMENT)
            ),
        },
        remarks="Our features hold a lexicon: IBM Model 2 over all of the parallel text. Its seconds (about 6) belong to "
        "featurizing and are not counted. Links train only Gapwise; for nltk they choose how its directions join.",
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
    "letor": Task(
        "LETOR, ranking", "the queries of test.txt", _queries, judges.ORDER,
        {
            "gapwise": _command("dataset=ranking", *QUERIES),
            "pairs": Contestant(
                "LIBLINEAR on pairs", lambda data, runs: PairsSVM(), {"C": (1.0, 0.1, 0.01, 10.0, 0.001, 0.0001)}
            ),
        },
        remarks="The data are `examples/lambdarank` of LightGBM, 201 and 50 queries, with each document's query as qid.",
    ),
}  # fmt: skip
