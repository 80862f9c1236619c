"""``gapwise evaluate RUN_OR_MODEL LABELLED…``: how well a model does on data that have their labels."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli._models import add_model, opened, read_new
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.tables import as_json, number, table

if TYPE_CHECKING:
    from gapwise.records import Record
    from gapwise.stages.model.measures import Measured
    from gapwise.stages.model.model import Model

FIELDS = ("support", "predicted", "right", "precision", "recall", "f1")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, "data in the form of the run's raw data, with labels", metavar="LABELLED")
    parser.add_argument("--json", action="store_true", help="one object with all numbers")


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.datasets import reader_of
    from gapwise.stages.model.measures import measure

    model = opened(asked)
    new = read_new(model, asked.inputs)
    measured = measure(model, new, reader_of(model.meta["dataset"]).truth(new, model.meta))
    print(as_json(as_facts(model, measured)) if asked.json else "\n".join(lines(model, measured)))
    return DONE


def as_facts(model: Model, measured: Measured) -> dict[str, object]:
    """All numbers, and which model they are of."""
    known = None if measured.known is None else measured.known._asdict()
    return {"run": model.origin.get("run"), "lambda": model.lambda_, **measured._asdict(), "known": known}


def lines(model: Model, measured: Measured) -> list[str]:
    """The numbers for people: the means, every label and kind of chunk that occurs, the largest confusions."""
    known = "" if measured.known is None else f" · {measured.known}"
    entries = "tokens" if "token_error" in measured.metrics else "examples"
    sequences = f"{measured.blocks} sequences, " if entries == "tokens" else ""
    means = {"loss": measured.loss, **measured.metrics}
    out = [
        f"{model.origin.get('run')}, λ {model.lambda_:.3g}: {sequences}{measured.tokens} {entries}{known}",
        *(f"{name.replace('_', ' '):>16}  {value:.4f}" for name, value in means.items()),
        *counts("label", measured.labels),
        *counts("chunk", measured.chunks),
    ]
    if measured.confusions:
        errors = [
            (r["truth"], r["predicted"], str(r["count"]), f"{100 * r['share']:.1f} %") for r in measured.confusions
        ]
        out += ["", *table([("true", "predicted", entries, "of the true"), *errors], right=(2, 3))]
    return out


def counts(head: str, rows: list[Record]) -> list[str]:
    """A table of the labels, or kinds of chunks, that occur, after an empty line; nothing where there are none."""
    occur = [row for row in rows if row["support"] or row["predicted"]]
    cells = [(str(row["label"]), *(number(row[name]) for name in FIELDS)) for row in occur]
    return ["", *table([(head, *FIELDS), *cells], right=range(1, len(FIELDS) + 1))] if cells else []


COMMAND = Command("Measures the model of a run, at any λ, on labelled data.", arguments, run)
