"""``gapwise explain RUN_OR_MODEL [INPUT…]``: what spoke for one predicted label; or what speaks for each."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli._models import add_model, opened, read_new
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.tables import as_json

if TYPE_CHECKING:
    from pandas import DataFrame

    from gapwise.stages.model.model import Model


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, "new data, as for predict (default: show the weights of each label)", inputs="*")
    parser.add_argument("--block", type=int, default=0, metavar="I", help="the sequence or example, from 0 (0)")
    parser.add_argument("--entry", type=int, default=0, metavar="T", help="of a sequence the token, from 0 (0)")
    parser.add_argument(
        "--rival", metavar="LABEL", help="the label to compare with (default: the one of the best other labelling)"
    )
    parser.add_argument(
        "--label", action="append", dest="labels", metavar="LABEL", help="weights of this one only; may be repeated"
    )
    parser.add_argument("-k", type=int, default=10, metavar="K", help="so many that speak for it, and against it (10)")
    parser.add_argument("--json", action="store_true", help="one object with all parts, or a list of weights")


def run(asked: argparse.Namespace) -> int:
    model = opened(asked)
    if not asked.inputs:
        weights = weights_of(model, asked.labels, asked.k)
        print(as_json(weights.to_dict("records")) if asked.json else weights.to_string(index=False))
        return DONE
    rival = next((label for label in model.labels if str(label) == asked.rival), asked.rival)
    explanation = model.explain(read_new(model, asked.inputs).raw, asked.block, asked.entry, rival)
    print(as_json(explanation.facts) if asked.json else explanation.text(asked.k))
    return DONE


def weights_of(model: Model, labels: list[str] | None, k: int) -> DataFrame:
    """The weights by name that speak most for each label and against it; ValueError names a label that is not there."""
    import pandas as pd

    from gapwise.stages.model.named_weights import strongest

    of_label = {str(label): own for label, own in model.named_weights.groupby("label", sort=False, observed=True)}
    if unknown := [label for label in labels or () if label not in of_label]:
        raise ValueError(f"--label: there is no {unknown[0]!r}; known: {', '.join(of_label)}")
    return pd.concat([strongest(of_label[label], "weight", k) for label in labels or of_label])


COMMAND = Command(
    "Explains a predicted label, or shows weights by name: what speaks for it and against it.", arguments, run
)
