"""``gapwise evaluate RUN_OR_MODEL LABELLED…``: how well a model does on data that have their labels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli.predict import add_inputs, add_model, opened
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.words import as_json, number, table

if TYPE_CHECKING:
    from gapwise.stages.model.measures import Measured
    from gapwise.stages.model.model import Model

FIELDS = ("label", "support", "predicted", "right", "precision", "recall", "f1")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_inputs(parser, "data in the form of the run's raw data, with labels", "LABELLED")
    parser.add_argument("--json", action="store_true", help="one object with all numbers")


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.model.measures import measure, read_labelled

    model = opened(asked)
    measured = measure(model, *read_labelled(model, asked.inputs))
    print(as_json(as_facts(model, measured)) if asked.json else "\n".join(lines(model, measured)))
    return DONE


def as_facts(model: Model, measured: Measured) -> dict[str, object]:
    """All numbers, and which model they are of."""
    known = None if measured.known is None else measured.known._asdict()
    return {"run": model.origin.get("run"), "lambda": model.lambda_, **measured._asdict(), "known": known}


def lines(model: Model, measured: Measured) -> list[str]:
    """The numbers for people: the means, every label that occurs, the largest confusions."""
    known = "" if measured.known is None else f" · {measured.known}"
    labels = [
        tuple(number(row[name]) for name in FIELDS) for row in measured.labels if row["support"] or row["predicted"]
    ]
    measures = [
        ("loss", measured.loss),
        *((name.replace("_", " "), value) for name, value in measured.metrics.items()),
    ]
    entries = "tokens" if "token_error" in measured.metrics else "examples"
    sequences = f"{measured.blocks} sequences, " if entries == "tokens" else ""
    out = [
        f"{model.origin.get('run')}, λ {model.lambda_:.3g}: {sequences}{measured.tokens} {entries}{known}",
        *(f"{name:>16}  {value:.4f}" for name, value in measures),
        "",
        *table([FIELDS, *labels], right=range(1, len(FIELDS))),
    ]
    if measured.confusions:
        errors = [
            (r["truth"], r["predicted"], str(r["count"]), f"{100 * r['share']:.1f} %") for r in measured.confusions
        ]
        out += ["", *table([("true", "predicted", entries, "of the true"), *errors], right=(2, 3))]
    return out


COMMAND = Command("Measures the model of a run, at any λ, on labelled data.", arguments, run)
