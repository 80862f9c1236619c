"""CRFsuite through python-crfsuite: conditional random fields over the attributes that we get, and three biases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapwise.pipeline.practice.contest import Contestant, Labels, Part, Predict, Setting, by_validation


def _items(sequence: Sequence[Sequence[str]]) -> list[list[str]]:
    """With attributes for every token, the first and the last: the biases that a `ChainSVM` has by itself."""
    items = [[*token, "bias"] for token in sequence]
    items[0].append("BOS")
    items[-1].append("EOS")
    return items


def fit(algorithm: str, part: Part, setting: Setting, folder: Path) -> tuple[Predict, int]:
    """Train with one of CRFsuite's algorithms."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=dict(setting), verbose=False)
    for sequence, labels in zip(part.x, part.y, strict=True):
        trainer.append(_items(sequence), list(labels))
    file = folder / "model.crfsuite"
    trainer.train(str(file))
    tagger: Any = pycrfsuite.Tagger()
    tagger.open(str(file))

    def predict(x: Sequence[Any]) -> list[Labels]:
        return [tagger.tag(_items(sequence)) for sequence in x]

    return predict, file.stat().st_size


def crfsuite(says: str, algorithm: str, grid: Sequence[Setting]) -> Contestant:
    """A contestant for one of the algorithms."""
    return Contestant(f"CRFsuite, {says}", by_validation(lambda *given: fit(algorithm, *given), grid), ("pycrfsuite",))


L2 = (1.0, 0.3, 3.0, 0.1, 10.0, 0.03)
BOTH = ((0.1, 0.1), (0.1, 1.0))
"""c1 and c2 of settings with a penalty on the sum of the weights' absolute values as well."""
GRID = [{"c2": L2[0]}, {"c2": L2[1]}, *({"c1": c1, "c2": c2} for c1, c2 in BOTH), *({"c2": c2} for c2 in L2[2:])]
LBFGS = crfsuite("l-bfgs", "lbfgs", GRID)
PERCEPTRON = crfsuite("averaged perceptron", "ap", [{"max_iterations": k} for k in (100, 30, 10, 5)])
PASSIVE_AGGRESSIVE = crfsuite(
    "passive-aggressive", "pa", [{"c": c, "max_iterations": k} for k in (100, 10) for c in (1.0, 0.1, 0.01)]
)
