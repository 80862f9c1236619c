"""Prediction beside CRFsuite's tagger: CPU seconds for CoNLL-2000's 2,012 test sentences, in turns, within one run.

    GAPWISE_DATA=DATA python tests/benchmarks/bench_tagging.py [--turns 5]

Tokens as lists of attributes and as dicts, made anew before every turn, so that no string has its hash yet. Ours is
`ChainSVM.predict`; theirs python-crfsuite's `Tagger.tag`, sentence by sentence. Both know the same attributes; neither
model is trained well, which changes no second of prediction.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pycrfsuite

from gapwise import ChainSVM

sys.path.insert(0, str(Path(__file__).parent / "practice"))
from tasks import TASKS

ITERATIONS = 5


def listed(sentences: list[Any]) -> list[Any]:
    """The attributes of each token as new strings."""
    return [[[f"{name} "[:-1] for name in token] for token in sentence] for sentence in sentences]


def keyed(sentences: list[Any]) -> list[Any]:
    """The same as dicts: what stands before the first tab, and what after it."""
    return [[dict(name.split("\t", 1) for name in token) for token in sentence] for sentence in sentences]


def crfsuite(x: list[Any], y: list[Any], folder: Path) -> Callable[[list[Any]], Any]:
    """A tagger after a few iterations of l-bfgs."""
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c2": 1.0, "max_iterations": ITERATIONS}, verbose=False)
    for sentence, labels in zip(x, y, strict=True):
        trainer.append(sentence, labels)
    trainer.train(str(folder / "model"))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model"))
    return lambda sentences: [tagger.tag(sentence) for sentence in sentences]


def seconds(predict: Callable[[list[Any]], Any], x: list[Any]) -> float:
    """Of CPU, for one call."""
    begun = time.process_time()
    predict(x)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    turns = range(parser.parse_args().turns)
    with tempfile.TemporaryDirectory() as folder:
        data = TASKS["conll"].load(Path(folder), 0)
        for name, form in (("lists", listed), ("dicts", keyed)):
            x, y = form(data.x), [labels for labels, _ in data.y]
            model = ChainSVM(lam=0.1, tolerance=0.3, verify=False).fit(x, y)
            tag = crfsuite(x, y, Path(folder))
            model.predict(form(data.test_x[:2]))
            pairs = [(seconds(model.predict, form(data.test_x)), seconds(tag, form(data.test_x))) for _ in turns]
            ours, theirs = (min(column) for column in zip(*pairs, strict=True))
            print(f"{name}: ours {ours:.3f} s, CRFsuite's {theirs:.3f} s, ratio {ours / theirs:.2f}, "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
