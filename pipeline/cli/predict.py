"""``gapwise predict RUN_OR_MODEL INPUT… [-o OUT]``: labels for new data, in the form of the data."""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.cli._models import add_model, add_output, is_link, opened, output, read_new, refuse_existing
from gapwise.pipeline.errors import DONE

if TYPE_CHECKING:
    from gapwise.stages.datasets import Known, Shown
    from gapwise.stages.model.calibration import Calibration
    from gapwise.stages.model.model import Prediction
    from gapwise.storage.backend import Location

WITHOUT_ATTRIBUTES = (
    "no token has an attribute; this model takes lines of a label, which may be empty, and attributes after tabs"
)
LABELS, PREDICTED = "labels.csv", (".png", ".npy")
"""What a folder with predictions for pictures holds: a table of labels, masks and maps."""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, "new data, in the form of the run's raw data")
    add_output(parser, "file, of labels only if it ends in .npz; for pictures a folder")
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--margins", action="store_true", help="of each label: by how much the best other labelling is worse"
    )
    more.add_argument("--n-best", type=count, metavar="N", help="the N best labellings of each block, with scores")


def count(word: str) -> int:
    """A whole number >= 1, as argparse wants it."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {word!r}")
    return int(word)


class Told:
    """Says once that the command compiles; the `progress` of `Compiling`."""

    said = False

    def report(self, done: int, total: int, activity: str) -> None:
        if not self.said:
            say(activity)
        self.said = True


def say(words: object) -> None:
    """A line on stderr."""
    print(f"predict: {words}", file=sys.stderr)


def saying_that_it_compiles(needed: bool) -> AbstractContextManager[object]:
    """Within it a line says that functions are compiled; only where they are `needed`, as this imports the compiler."""
    if not needed:
        return nullcontext()
    from gapwise.pipeline.compiling import Compiling

    return Compiling(Told())


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.datasets import NothingKnown
    from gapwise.stages.model.facts import fitting
    from gapwise.stages.model.prediction_files import shown

    if asked.calibrate is not None and asked.n_best is not None:
        raise ValueError(
            "--calibrate makes probabilities of margins, which lists of labellings lack; leave out one of them"
        )
    out = None if asked.out is None else output(asked.out)
    margins = asked.margins or asked.calibrate is not None
    model = opened(asked)
    new = read_new(model, asked.inputs)
    only_labels = out is not None and out.name.endswith(".npz")
    _check_place(out, new.several and not only_labels, asked.force)
    with fitting(model.source):
        with warnings.catch_warnings(), saying_that_it_compiles(margins or asked.n_best is not None):
            warnings.simplefilter("ignore", NothingKnown)  # told below
            predicted = model.answer(new.raw, margins=margins, n_best=asked.n_best)
        tell(predicted.known)
        if margins and model.calibration is not None:
            say(f"probabilities by {_source(model.calibration)}")
        if out is None:
            sys.stdout.write(shown(model.meta, new, predicted).text)
            return DONE
        if is_link(out):
            out.unlink()
        write(out, _npz(predicted) if only_labels else shown(model.meta, new, predicted))
    return DONE


def tell(known: Known | None) -> None:
    """Say how many of the input's attributes the training data do not have."""
    if known is None:
        return
    if known.known < known.total:
        say(f"{known}; the others do not occur in the training data")
    if known.total == 0:
        say(WITHOUT_ATTRIBUTES)


def _check_place(out: Location | None, folder: bool, force: bool) -> None:
    """Raise ValueError, before anything is computed, unless predictions can be written there."""
    from gapwise.storage.files import refuse_others

    if out is None:
        if folder:
            raise ValueError("masks are several files; give a folder for them: -o FOLDER")
        return
    if not folder and out.is_dir():
        raise ValueError(f"{out}: is a folder; give a file")
    refuse_existing(out, force)
    if folder and not is_link(out):
        refuse_others(out, LABELS, "a folder of predictions", lambda name: name == LABELS or name.endswith(PREDICTED))


def _source(calibration: Calibration) -> str:
    """What made the probabilities, in words."""
    return f"{calibration.method} calibration on {calibration.entries:,} labels of {calibration.split}"


def _npz(predicted: Prediction) -> bytes:
    """Labels and where each block begins, as in a run's predictions.npz, and what else was asked for.

    That is ``margins``, ``probabilities`` with ``calibration`` (what they were fitted on), or ``n_best_labels``, n rows of
    each block, flat from n * label_ptr[i] on, with ``n_best_scores`` (blocks, n).
    """
    import io

    import numpy as np

    arrays = {"labels": predicted.labels, "label_ptr": predicted.label_ptr}
    if predicted.margins is not None:
        arrays["margins"] = predicted.margins
    if predicted.probabilities is not None and predicted.calibration is not None:
        arrays["probabilities"] = predicted.probabilities
        arrays["calibration"] = np.array(_source(predicted.calibration))
    if predicted.n_best is not None:
        arrays |= {"n_best_labels": predicted.n_best.labels, "n_best_scores": predicted.n_best.scores}
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def write(out: Location, what: Shown | bytes) -> None:
    """Write a file, or a folder of files, whole or not at all."""
    from gapwise.storage.files import make_directory, replaced
    from gapwise.storage.files import write as write_file

    if isinstance(what, bytes) or what.files is None:
        make_directory(out.parent)
        write_file(out, what if isinstance(what, bytes) else what.text.encode(errors="backslashreplace"))
        return
    with replaced(out) as made:
        made.mkdir()
        for name, content in what.files:
            (made / name).write_bytes(content)


COMMAND = Command("Predicts labels of new data with the model of a run, at any λ.", arguments, run)
