"""On real data in the form of users, estimators make the problem of the pipeline's reader, to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from memory_sink import read

from gapwise import ChainSVM, MulticlassSVM
from gapwise.pipeline.estimators.solving import digest
from gapwise.stages.datasets import open_dataset
from gapwise.stages.problems import build


def of_reader(name: str, root: Path, **options: str) -> str:
    reader = open_dataset(name, {"name": name, "root": str(root), **options})
    sink, facts = read(reader)
    return digest(build(reader.structure, sink.arrays("train"), facts))


def test_ocr__is_the_problem_of_the_reader(shared_data: Path) -> None:
    with np.load(shared_data / "ocr" / "ocr_letters.npz") as data:
        ends, small = data["word_start"][1:-1], np.flatnonzero(data["word_fold"] == 0)
        pixels, letters = np.split(data["pixels"], ends), np.split(data["letter"], ends)
    ours = ChainSVM(loss="per_sequence").problem([pixels[i] for i in small], [letters[i] for i in small])
    assert digest(ours) == of_reader("ocr", shared_data / "ocr", size="small")


def test_usps__is_the_problem_of_the_reader(shared_data: Path) -> None:
    with np.load(shared_data / "usps" / "usps.npz") as data:
        images, digits = (data["X_train"] / 1000.0).astype(np.float32), data["y_train"]
    ours = MulticlassSVM(fit_intercept=False).problem(images, digits)
    assert digest(ours) == of_reader("usps", shared_data / "usps")
