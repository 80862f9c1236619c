"""``gapwise predict RUN_OR_MODEL INPUT… [-o OUT]``: labels for new data, in the form of the data."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import TRUST, Command, find_modules_here
from gapwise.pipeline.errors import DONE
from gapwise.pipeline.overview.states import RUN, add_root, add_run

if TYPE_CHECKING:
    from gapwise.stages.datasets import Shown
    from gapwise.stages.model.calibration import Calibration
    from gapwise.stages.model.model import Model
    from gapwise.stages.model.prediction import Prediction
    from gapwise.storage.backend import Location


CALIBRATIONS = ("isotonic", "sigmoid")
WITHOUT_ATTRIBUTES = (
    "no token has an attribute; this model takes lines of a label, which may be empty, and attributes after tabs"
)
"""Those of `stages.model.calibration`, which imports numpy."""


LABELS, PREDICTED = "labels.csv", (".png", ".npy")
"""What a folder with predictions for pictures holds: a table of labels, masks and maps."""


def lam(word: str) -> float | str:
    """``best`` or a number > 0, as argparse wants it."""
    if word == "best":
        return word
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected best or a number > 0, got {word!r}")
    return value


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_inputs(parser, "new data, in the form of the run's raw data")
    parser.add_argument(
        "-o", metavar="OUT", dest="out", help="file, of labels only if it ends in .npz; for pictures a folder"
    )
    more = parser.add_mutually_exclusive_group()
    more.add_argument(
        "--margins", action="store_true", help="of each label: by how much the best other labelling is worse"
    )
    more.add_argument("--n-best", type=count, metavar="N", help="the N best labellings of each block, with scores")
    add_calibration(parser)
    add_force(parser)


def add_inputs(parser: argparse.ArgumentParser, help: str, metavar: str = "INPUT") -> None:
    """The files that the reader of a model's data reads."""
    parser.add_argument("inputs", metavar=metavar, nargs="+", type=os.path.expanduser, help=help)


def count(word: str) -> int:
    """A whole number >= 1, as argparse wants it."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {word!r}")
    return int(word)


def add_calibration(parser: argparse.ArgumentParser) -> None:
    """The option that asks for probabilities, which `with_calibration` fits."""
    parser.add_argument(
        "--calibrate", choices=CALIBRATIONS, help="margins as probabilities, fitted on the run's validation split"
    )


def with_calibration(model: Model, where: Location, method: str | None) -> Model:
    """`model` of the run at `where` with the calibration that was asked for; ValueError for a model in a folder."""
    from gapwise.stages.model.calibrate import calibrated
    from gapwise.storage.models import is_model

    if method is None:
        return model
    if is_model(where):
        raise ValueError(
            f"{where}: --calibrate fits on the validation split of a run, which a model does not have; give the run, or "
            f"export the model again with --calibrate {method}"
        )
    return calibrated(model, where, method)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The arguments that name a model, which `opened` opens."""
    add_run(parser, "model", help=f"a run ({RUN}), or the folder of a model", metavar="RUN_OR_MODEL")
    parser.add_argument(
        "--lambda", dest="lam", type=lam, metavar="best|VALUE", help="of a run: any λ that it certifies"
    )
    add_root(parser)
    parser.add_argument(
        f"--{TRUST}",
        action="store_true",
        help="run the class or program of somebody's own that RUN_OR_MODEL names, if any",
    )


def opened(asked: argparse.Namespace) -> Model:
    """The model that the arguments of `add_model` name, compared with its run where that is at hand."""
    from gapwise.stages.model.folders import open_model

    if asked.trust:
        find_modules_here()
    where = run_or_model(asked.model, asked.root)
    model = open_model(where, asked.lam, trust=asked.trust)
    compare_at_hand(model, where, asked.root)
    return model


def add_force(parser: argparse.ArgumentParser) -> None:
    """The option that lets `refuse_existing` replace something."""
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run_or_model(word: str, root: str | None) -> Location:
    """The run or model that `word` means: a path or URL, or the beginning of a run's name or of its key."""
    from gapwise.pipeline.overview.find import named
    from gapwise.storage.backend import location

    there = location(word)
    return there if "://" in word or os.sep in word or there.exists() else named(word, root)


def output(word: str) -> Location:
    """The location that -o names. A symbolic link is the link itself, so that nothing is ever written to where it leads."""
    from pathlib import Path

    from gapwise.storage.backend import location

    there = location(word)
    given = Path(word).expanduser()
    return given.parent.resolve() / given.name if isinstance(there, Path) and given.is_symlink() else there


def refuse_existing(out: Location, force: bool) -> None:
    """Raise ValueError if there is something at `out` already, unless it is to be replaced and is a file, folder or link.

    An empty folder may stand for what will be written.
    """
    link = is_link(out)
    if not link and (not out.exists() or (out.is_dir() and not any(out.iterdir()))):
        return
    if out.exists() and not (out.is_file() or out.is_dir()):
        raise ValueError(f"{out}: is neither a file nor a folder; give another place, or leave out -o for stdout")
    if not force:
        what = "is a symbolic link" if link else "exists"
        raise ValueError(f"{out}: {what}; nothing is overwritten. Give another place, or --force to replace it")


def is_link(out: Location) -> bool:
    """Whether there is a symbolic link at `out`."""
    from pathlib import Path

    return isinstance(out, Path) and out.is_symlink()


def unlink(out: Location) -> None:
    """Remove a symbolic link at `out`, which a folder could not replace."""
    if is_link(out):
        out.unlink()


class Told:
    """Says once that the command compiles; the `progress` of `Compiling`."""

    def __init__(self) -> None:
        self.said = False

    def report(self, done: int, total: int, activity: str) -> None:
        if not self.said:
            print(f"predict: {activity}", file=sys.stderr)
        self.said = True


def saying_that_it_compiles(needed: bool) -> AbstractContextManager[object]:
    """Within it a line says that functions are compiled; only where they are `needed`, as this imports the compiler."""
    if not needed:
        return nullcontext()
    from gapwise.pipeline.compiling import Compiling

    return Compiling(Told())


def run(asked: argparse.Namespace) -> int:
    from gapwise.stages.datasets import NothingKnown, reader_of
    from gapwise.stages.model.facts import fitting
    from gapwise.stages.model.prediction_files import shown

    out = None if asked.out is None else output(asked.out)
    margins = asked.margins or (asked.calibrate is not None and asked.n_best is None)
    model = with_calibration(opened(asked), run_or_model(asked.model, asked.root), asked.calibrate)
    with fitting(model.source):
        new = reader_of(model.meta["dataset"]).read_new(asked.inputs, model.meta)
        only_labels = out is not None and out.name.endswith(".npz")
        _check_place(out, new.several and not only_labels, asked.force)
        with warnings.catch_warnings(), saying_that_it_compiles(margins or asked.n_best is not None):
            warnings.simplefilter("ignore", NothingKnown)  # told below
            predicted = model.predict(new.raw, margins=margins, n_best=asked.n_best)
        if predicted.known is not None and predicted.known.known < predicted.known.total:
            print(f"predict: {predicted.known}; the others do not occur in the training data", file=sys.stderr)
        if predicted.known is not None and predicted.known.total == 0:
            print(f"predict: {WITHOUT_ATTRIBUTES}", file=sys.stderr)
        if margins and model.calibration is not None:
            print(f"predict: probabilities by {_source(model.calibration)}", file=sys.stderr)
        if out is None:
            _print(shown(model.meta, new, predicted).text)
            return DONE
        unlink(out)
        write(out, _npz(predicted) if only_labels else shown(model.meta, new, predicted))
    return DONE


def compare_at_hand(model: Model, where: Location, root: str | None) -> None:
    """Compare a model in a folder with its run if that lies in the folder of the runs; DamagedError if they differ."""
    from gapwise.pipeline.overview.find import root_of
    from gapwise.stages.model.folders import compare
    from gapwise.storage.models import is_model

    name = str(model.origin.get("run", ""))
    if not is_model(where) or not name or name != os.path.basename(name):
        return
    try:
        run = root_of(root) / name
    except ValueError:
        return
    if (run / "manifest.json").is_file():
        compare(model, run, where)


def _print(text: str) -> None:
    """Write to stdout; whoever reads it may stop, as ``head`` does."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _check_place(out: Location | None, folder: bool, force: bool) -> None:
    """Raise ValueError, before anything is computed, unless predictions can be written there."""
    if folder and out is None:
        raise ValueError("masks are several files; give a folder for them: -o FOLDER")
    if out is None:
        return
    if not folder and out.is_dir():
        raise ValueError(f"{out}: is a folder; give a file")
    refuse_existing(out, force)
    if folder and out.exists() and not is_link(out) and (other := _besides_predictions(out)):
        raise ValueError(f"{out}: {other}; nothing is overwritten. Give another folder, or delete it")


def _besides_predictions(out: Location) -> str:
    """Why --force does not replace what is at `out` by a folder of predictions; empty if it may."""
    if not out.is_dir():
        return "is a file, and predictions for pictures are a folder"
    names = sorted(path.name for path in out.iterdir())
    others = [name for name in names if name != LABELS and not name.endswith(PREDICTED)]
    if others or (names and LABELS not in names):
        return (
            f"holds {others[0]} besides predictions" if others else f"has no {LABELS}, as folders of predictions have"
        )
    return ""


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
    import shutil

    from gapwise.storage.backend import backend
    from gapwise.storage.files import aside, make_directory, publish

    make_directory(out.parent)
    data = what if isinstance(what, bytes) else what.text.encode(errors="backslashreplace")
    files = None if isinstance(what, bytes) else what.files
    if files is None:
        backend(out).write(out, data)
        return
    made = aside(out)
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    try:
        for name, content in files:
            (made / name).write_bytes(content)
        publish(out)
    finally:
        shutil.rmtree(made, ignore_errors=True)


COMMAND = Command("Predicts labels of new data with the model of a run, at any λ.", arguments, run)
