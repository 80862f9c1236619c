"""``gapwise explain RUN_OR_MODEL INPUT… --block 0 --entry 3``: what spoke for one predicted label, and against it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli.predict import add_inputs, add_model, opened
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.words import as_json

if TYPE_CHECKING:
    from gapwise.stages.model.explain import Explanation, Part


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_inputs(parser, "new data, as for predict")
    parser.add_argument("--block", type=int, default=0, metavar="I", help="the sequence or example, from 0 (0)")
    parser.add_argument("--entry", type=int, default=0, metavar="T", help="of a sequence the token, from 0 (0)")
    parser.add_argument(
        "--rival", metavar="LABEL", help="the label to compare with (default: the one of the best other labelling)"
    )
    parser.add_argument("-k", type=int, default=10, metavar="K", help="parts for the label, and against it (10)")
    parser.add_argument("--json", action="store_true", help="one object, with all parts")


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.datasets import reader_of
    from gapwise.stages.model.facts import fitting

    model = opened(asked)
    with fitting(model.source):
        new = reader_of(model.meta["dataset"]).read_new(asked.inputs, model.meta)
    rival = next((label for label in model.labels if str(label) == asked.rival), asked.rival)
    explanation = model.explain(new.raw, asked.block, asked.entry, rival)
    print(as_json(explanation.facts) if asked.json else "\n".join(lines(explanation, asked.k)))
    return DONE


def lines(explanation: Explanation, k: int) -> list[str]:
    """The explanation for people: the margin, then the `k` strongest parts of either side, each token by its number."""
    t = explanation.entry
    fors, againsts = explanation.speak_for(k), explanation.speak_against(k)
    rest = explanation.margin - sum(part.score for part in [*fors, *againsts])
    others = len(explanation.parts) - len(fors) - len(againsts)
    return [
        f"entry {t}: {explanation.predicted[t]}, not {explanation.rival[t]}: margin {explanation.margin:.4f}",
        *map(_line, fors),
        *map(_line, reversed(againsts)),
        *([f"  {rest:+9.4f}  {others} more"] if others else []),
    ]


def _line(part: Part) -> str:
    return f"  {part.score:+9.4f}  {part.entry:>3}  {part.feature}  ({part.predicted}, not {part.rival})"


COMMAND = Command("Explains one predicted label: the features that spoke for it and against it.", arguments, run)
