"""``gapwise export RUN --format gapwise|mlflow``: the model of a run at one λ, to be used without the run.

(`pipeline.export` is something else: the copies of a run's results that DVC keeps.)
"""

from __future__ import annotations

import argparse

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli._models import (
    add_lambda,
    add_output,
    is_link,
    output,
    refuse_existing,
    run_or_model,
    with_calibration,
)
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.model_formats import ENDINGS, write
from gapwise.pipeline.overview.states import add_run


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "run")
    add_lambda(parser)
    parser.add_argument("--format", choices=[*ENDINGS], default="gapwise", help="form of the model (gapwise)")
    add_output(parser, "file or folder (RUN's name and the form, here)")


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.model.from_run import BEST, model_of

    there = run_or_model(asked.run, asked.root)
    target = output(asked.out or f"{there.name}.{ENDINGS[asked.format]}")
    refuse_existing(target, asked.force)
    model = with_calibration(model_of(there, asked.lam or BEST), there, asked.calibrate)
    if is_link(target):
        target.unlink()
    write(asked.format, model, target, there)
    print(f"{target}: the model at lambda {model.lambda_:g}, {_worth(model.certificate)}")
    if model.code is not None:
        print(f"it predicts with {model.code!r}, which predict runs only with --trust")
    return DONE


def _worth(certificate: dict[str, object]) -> str:
    """What the certificate says, in words."""
    if not certificate["certified"]:
        return "not certified"
    gap, eps = certificate["gap"], f"{certificate['eps']:g}{' of the primal value' if certificate['relative'] else ''}"
    return f"certified: gap {'' if gap is None else f'{gap:.3g} '}<= {eps} ({certificate['certainty']})"


COMMAND = Command("Writes the model of a run at one λ, to be used without the run.", arguments, run)
