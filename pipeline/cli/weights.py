"""``gapwise weights RUN_OR_MODEL``: what speaks for each label of a chain and against it, and transitions."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli.predict import add_model, opened
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.words import as_json

if TYPE_CHECKING:
    from gapwise.stages.datasets.arrays.rows import Label
    from gapwise.stages.model.named_weights import NamedWeights


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--label", action="append", dest="labels", metavar="LABEL", help="only this one; may be repeated"
    )
    parser.add_argument("-k", type=int, default=10, metavar="K", help="attributes for a label, and against it (10)")
    parser.add_argument("--json", action="store_true", help="one object; with all transitions")


def run(asked: argparse.Namespace) -> int:
    weights = opened(asked).named_weights
    known = {str(label): label for label in weights.labels}
    labels = [known.get(word, word) for word in asked.labels] if asked.labels else [*weights.labels]
    if asked.json:
        print(as_json(as_facts(weights, labels, asked.k)))
    else:
        print("\n".join(lines(weights, labels, asked.k)))
    return DONE


def as_facts(weights: NamedWeights, labels: Iterable[Label], k: int) -> dict[str, object]:
    """The weights by name: ``for`` and ``against`` each label, and ``transitions`` by falling weight."""

    def side(label: Label, against: bool) -> list[dict[str, object]]:
        return [row._asdict() for row in weights.top_features(label, k, against=against)]

    features = {str(label): {"for": side(label, False), "against": side(label, True)} for label in labels}
    return {"labels": features, "transitions": [row._asdict() for row in weights.transitions()]}


def lines(weights: NamedWeights, labels: Iterable[Label], k: int) -> list[str]:
    """The same for people; of transitions, the `k` of largest and the `k` of least weight."""
    out = []
    for label in labels:
        rows = [*weights.top_features(label, k), *reversed(weights.top_features(label, k, against=True))]
        out += [str(label), *(f"  {row.weight:+9.4f}  {row.attribute}" for row in rows), ""]
    pairs = weights.transitions()
    shown = pairs if len(pairs) <= 2 * k else [*pairs[:k], *pairs[-k:]]
    out += ["transitions", *(f"  {row.weight:+9.4f}  {row.before} → {row.after}" for row in shown)]
    return out


COMMAND = Command("Shows the weights of a chain by name: for and against each label, and transitions.", arguments, run)
