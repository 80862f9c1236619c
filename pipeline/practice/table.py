"""The rows of the comparison: every task with its data, its figures of merit and who takes part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gapwise.pipeline.practice import data, judges, ours
from gapwise.pipeline.practice.contest import Contestant, Data, Judge
from gapwise.pipeline.practice.peers import crfsuite, ibm, pairs, rows

SIZES = ("tiny", "full")


@dataclass(frozen=True)
class Task:
    """A row of the page."""

    says: str
    load: Callable[[Path, str, int], Data]
    """load(root of runs, size, split)"""
    judge: Judge
    contestants: Mapping[str, Contestant]
    folds: int = 1
    """10: those of the paper, each tested; 1: one test set, whose units are resampled"""
    tests: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """who does not take part, and why"""
    remarks: tuple[str, ...] = ()
    """paragraphs under the table"""

    def splits(self, size: str) -> range:
        """The folds to measure."""
        return range(self.folds if size == "full" else 1)


DLIB = "has no wheel and takes a compiler; `tests/benchmarks/bench_dlib.py` compares it, with the same objective, by seconds"
ONE_TRAINS, NINE_TRAIN = "10 folds of the paper: one trains, nine test", "10 folds of the paper: nine train, one tests"
TOKENS = {
    "crfsuite_lbfgs": crfsuite.LBFGS,
    "crfsuite_ap": crfsuite.PERCEPTRON,
    "crfsuite_pa": crfsuite.PASSIVE_AGGRESSIVE,
    "liblinear": rows.LIBLINEAR,
    "logistic": rows.LOGISTIC,
}
SUPERPIXELS = {"liblinear": rows.LIBLINEAR, "logistic": rows.LOGISTIC, "forest": rows.FOREST}
TINY_PICTURES = ("dataset.n_train=12", "dataset.n_test=6")


def _pictures(name: str, root: Path, size: str, split: int) -> Data:
    return data.pictures(name, TINY_PICTURES if size == "tiny" else (), root)


TASKS: Mapping[str, Task] = {
    "ocr_small": Task(
        "OCR, small", lambda root, size, fold: data.letters("small", size, fold), judges.LETTERS,
        {"gapwise": ours.CHAIN, **TOKENS}, folds=10, tests=ONE_TRAINS,
        left_out={"dlib": DLIB},
    ),
    "usps": Task(
        "USPS digits", lambda root, size, fold: data.digits(size), judges.ERROR,
        {
            "gapwise_rbf": ours.RBF, "gapwise": ours.MULTICLASS,
            "liblinear": rows.LIBLINEAR, "logistic": rows.LOGISTIC, "svc": rows.RBF, "forest": rows.FOREST,
        },
        tests="2,007 test digits",
        remarks=(
            "All linear models are alike; kernels and the forest are better. Ours and SVC choose gamma among the same",
            "values. SVC has a problem for each pair of digits, ours one for all ten.",
        ),
    ),
    "hansards": Task(
        "Hansards, word alignment", lambda root, size, fold: data.alignments(root), judges.ALIGNMENT,
        {
            "gapwise": ours.by_command("Gapwise, dataset=hansards", ["+experiment=regpath_hansards", "dataset=hansards"]),
            "ibm_1": ibm.IBM_1,
        },
        tests="347 hand-aligned test pairs; 137 train",
        remarks=(
            "Our features hold a lexicon: IBM Model 2 over all of the parallel text. Its seconds (about 6) belong to",
            "featurizing and are not counted. The hand-made links train only Gapwise; for nltk they choose only how its",
            "directions join.",
        ),
    ),
    "conll": Task(
        "CoNLL-2000, chunking", lambda root, size, fold: data.chunks(size), judges.CHUNKS,
        {"gapwise": ours.CHAIN, "gapwise_bio": ours.CHAIN_BIO, **TOKENS},
        tests="2,012 test sentences",
        remarks=(
            'The path on which `lam="auto"` looks for λ has eps = 0.02; one of 0.1 is too coarse here and ends at an F1 of',
            "0.933. Constraints change F1 by 0.0003 at most. CRFsuite by l-bfgs tried c2 = 1 and 0.3, and c1 = c2 = 0.1:",
            "nothing else fitted into the limit of 600 CPU seconds.",
        ),
    ),
    "weizmann": Task(
        "Weizmann horses", partial(_pictures, "weizmann"), judges.HORSES,
        {
            "gapwise": ours.by_command("Gapwise, dataset=weizmann", ["dataset=weizmann"]),
            "gapwise_pixels": ours.by_command(
                "Gapwise, dataset.loss=per_image", ["dataset=weizmann", "dataset.loss=per_image"]
            ),
            **SUPERPIXELS,
        },
        tests="181 test pictures; IoU of all pixels together",
        remarks=(
            "The default loss counts the two classes of a picture alike; `per_image` counts pixels, as the first",
            "figure does.",
        ),
    ),
    "ocr_large": Task(
        "OCR, large", lambda root, size, fold: data.letters("large", size, fold), judges.LETTERS,
        {"gapwise": ours.CHAIN, **TOKENS}, folds=10, tests=NINE_TRAIN,
        left_out={"dlib": DLIB},
    ),
    "msrc": Task(
        "MSRC, 21 classes", partial(_pictures, "msrc"), judges.CLASSES,
        {
            "gapwise": ours.by_command("Gapwise, dataset=msrc", ["+experiment=regpath_stanford", "dataset=msrc"]),
            **SUPERPIXELS,
        },
        tests="256 test pictures",
        remarks=(
            "The refit of Gapwise ends with `BOUND_LIMIT`: its gap is at most 3.2e-3 of the objective, where 1e-3 is asked.",
            "Almost all of that is the slack which `dataset.slack` allows the oracle's bounds.",
        ),
    ),
    "letor": Task(
        "LETOR, ranking", lambda root, size, fold: data.queries(root), judges.ORDER,
        {"gapwise": ours.by_command("Gapwise, dataset=ranking", data.QUERIES), "pairs": pairs.PAIRS},
        tests="the queries of test.txt",
        remarks=(
            "LETOR's own files are its publisher's to give. These are `examples/lambdarank` of LightGBM, 201 and 50",
            "queries, with the number of each document's query written as qid. `$GAPWISE_DATA/letor` takes train.txt and",
            "test.txt.",
            "With 39 queries to choose on, whose loss has a standard error of 0.03, any λ below 2 is as good.",
        ),
    ),
}  # fmt: skip
