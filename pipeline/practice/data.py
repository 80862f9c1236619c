"""The data of the tasks as units with their truth, through the readers of Gapwise."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from gapwise.pipeline.practice.contest import Data, Part
from gapwise.pipeline.practice.ours import command, features_of
from gapwise.stages.datasets import Blocks, DataError, open_dataset
from gapwise.stages.problems.void import VOID

TINY = 60
"""Units of each part with `practice.size=tiny`."""


def _read(name: str, options: Mapping[str, object]) -> tuple[Blocks, Mapping[str, object]]:
    reader = open_dataset(name, {"name": name, "root": None, **options})
    sink = Blocks(reader.structure)
    return sink, reader.featurize(sink, map, lambda *_: None)


def _units(flat: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    return [flat[a:b] for a, b in pairwise(np.asarray(ptr).tolist())]


def _small(data: Data, size: str) -> Data:
    if size == "full":
        return data
    parts = [part.take(np.arange(min(TINY, len(part.x)))) for part in (data.train, data.test)]
    return data._replace(train=parts[0], test=parts[1])


def tokens(name: str, options: Mapping[str, object], size: str) -> Data:
    """Sequences of a reader: tokens as lists of attributes by name, without biases, and labels by name."""
    from gapwise.stages.datasets.text.vocabulary import read_vocabulary

    sink, meta = _read(name, options)
    shared = sink.arrays("train")
    plain = int(str(meta["attributes"])) - 3
    names = list(read_vocabulary(shared)) if "text" in meta else [f"p{k}" for k in range(plain)]
    lists = (meta["label_names"], meta.get("test_only_labels", ()))
    labels = [str(label) for names_of_labels in lists for label in names_of_labels]  # type: ignore[attr-defined]

    def part(split: str) -> Part:
        arrays = sink.arrays(split)
        edges = np.append(0, np.cumsum(arrays["counts"], dtype=np.int64)).tolist()
        ids = np.asarray(arrays["ids"]).tolist()
        rows = [[names[k] for k in ids[a:b] if k < plain] for a, b in pairwise(edges)]
        start = arrays["labels_ptr"].tolist()
        y = [[labels[k] for k in unit] for unit in _units(np.asarray(arrays["labels"]), arrays["labels_ptr"])]
        return Part([rows[a:b] for a, b in pairwise(start)], y, y)

    return _small(Data(part("train"), part("test")), size)


def letters(size_of_training: str, size: str, split: int) -> Data:
    """OCR; `split` is the fold."""
    return tokens("ocr", {"size": size_of_training, "fold": split}, size)


def chunks(size: str) -> Data:
    """CoNLL-2000."""
    return tokens("conll", {}, size)


def digits(size: str) -> Data:
    """USPS: each digit is a unit of one row."""
    sink, _ = _read("usps", {})

    def part(split: str) -> Part:
        arrays = sink.arrays(split)
        labels = np.asarray(arrays["labels"]).reshape(-1, 1).astype(int)
        return Part(list(np.asarray(arrays["x"], np.float64)[:, None, :]), list(labels), list(labels))

    return _small(Data(part("train"), part("test")), size)


def store(words: tuple[str, ...], root: Path) -> Path:
    """The feature store of a data set, made by the pipeline if it is not there."""
    return features_of(command([*words, "run.stage=featurize"], root).folder)


def pictures(name: str, words: Sequence[str], root: Path) -> Data:
    """Pictures of a feature store: the unary features of superpixels, weighted by their pixels; void has no label."""
    from gapwise.storage.features import open_features

    features = open_features(store((f"dataset={name}", *words), root))
    classes = "counts" in features.arrays("test")

    def part(split: str) -> Part:
        arrays = features.arrays(split)
        x = _units(arrays["unary"], arrays["unary_ptr"])
        y = [
            [None if k == VOID and classes else int(k) for k in unit]
            for unit in _units(arrays["labels"], arrays["labels_ptr"])
        ]
        area = _units(arrays["area"], arrays["area_ptr"])
        if classes:
            return Part(x, y, _units(arrays["counts"], arrays["counts_ptr"]), area)
        pixels = _units(arrays["foreground"], arrays["foreground_ptr"])
        return Part(x, y, [np.stack([whole - own, own], axis=1) for whole, own in zip(area, pixels, strict=True)], area)

    return Data(part("train"), part("test"), words=words)


def alignments(root: Path) -> Data:
    """Pairs of sentences with the annotators' links, and the parallel text."""
    from gapwise.stages.datasets.alignment import tokens as words_of
    from gapwise.stages.datasets.alignment.links import read_pairs, word_pair
    from gapwise.storage.features import open_features

    features = open_features(store(("dataset=hansards",), root))

    def part(split: str) -> Part:
        arrays = features.arrays(split)
        links = [_units(arrays[name], arrays[f"{name}_ptr"]) for name in ("sure", "possible")]
        truth = [tuple({tuple(link) for link in kind.tolist()} for kind in pair) for pair in zip(*links, strict=True)]
        return Part([word_pair(arrays, i) for i in range(len(truth))], truth, truth)

    files = open_dataset("hansards", {"name": "hansards", "root": None}).files()
    plain = read_pairs(files["parallel_100k.en"], files["parallel_100k.fr"])
    text = [(words_of.english(" ".join(e)), words_of.french(" ".join(f))) for e, f in plain]
    return Data(part("train"), part("test"), text)


LETOR = "${oc.env:GAPWISE_DATA,../shared/data}/letor"
"""The folder with train.txt and test.txt of a LETOR data set."""
QUERIES = ("dataset=ranking", f"dataset.file={LETOR}/train.txt", f"dataset.test_file={LETOR}/test.txt")


def queries(root: Path) -> Data:
    """Documents of queries by a feature store."""
    from gapwise.storage.features import open_features

    folder = Path(os.environ.get("GAPWISE_DATA", "../shared/data")) / "letor"
    if missing := [name for name in ("train.txt", "test.txt") if not (folder / name).is_file()]:
        raise DataError(f"{folder}: there is no {missing[0]}; LETOR's files are its publisher's to give")
    features = open_features(store(QUERIES, root))

    def part(split: str) -> Part:
        arrays = features.arrays(split)
        relevance = _units(np.asarray(arrays["relevance"], float), arrays["x_ptr"])
        return Part(_units(arrays["x"], arrays["x_ptr"]), relevance, relevance)

    return Data(part("train"), part("test"))
