"""What commands on models share: the arguments that name a model and its inputs, opening it, and where output may go."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import TRUST, find_modules_here
from gapwise.pipeline.overview.states import RUN, add_root, add_run

if TYPE_CHECKING:
    from gapwise.stages.datasets import NewInput
    from gapwise.stages.model.model import Model
    from gapwise.storage.backend import Location

CALIBRATIONS = ("isotonic", "sigmoid")
"""Those of `stages.model.calibration`, which imports numpy."""


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


def add_model(parser: argparse.ArgumentParser, help: str, inputs: str = "+", metavar: str = "INPUT") -> None:
    """The arguments that name a model, which `opened` opens, and the files that the reader of its data reads."""
    add_run(parser, "model", help=f"a run ({RUN}), or the folder of a model", metavar="RUN_OR_MODEL")
    parser.add_argument("inputs", metavar=metavar, nargs=inputs, type=os.path.expanduser, help=help)
    add_lambda(parser)
    parser.add_argument(
        f"--{TRUST}",
        action="store_true",
        help="run the class or program of somebody's own that RUN_OR_MODEL names, if any",
    )


def add_lambda(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose among a run's models, and say where runs are."""
    parser.add_argument(
        "--lambda", dest="lam", type=lam, metavar="best|VALUE", help="of a run: any λ that it certifies (best)"
    )
    add_root(parser)


def add_output(parser: argparse.ArgumentParser, help: str) -> None:
    """Where output goes, and what makes probabilities of margins."""
    parser.add_argument("-o", metavar="OUT", dest="out", help=help)
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument(
        "--calibrate", choices=CALIBRATIONS, help="margins as probabilities, fitted on the run's validation split"
    )


def run_or_model(word: str, root: str | None) -> Location:
    """The run or model that `word` means: a path or URL, or the beginning of a run's name or of its key."""
    from gapwise.pipeline.overview.find import named
    from gapwise.storage.backend import location

    there = location(word)
    return there if "://" in word or os.sep in word or there.exists() else named(word, root)


def opened(asked: argparse.Namespace) -> Model:
    """The model that the arguments of `add_model` name, calibrated if asked, compared with its run if that is at hand."""
    from gapwise.stages.model.folders import open_model

    if asked.trust:
        find_modules_here()
    where = run_or_model(asked.model, asked.root)
    model = open_model(where, asked.lam, trust=asked.trust)
    compare_at_hand(model, where, asked.root)
    return with_calibration(model, where, vars(asked).get("calibrate"))


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


def read_new(model: Model, inputs: list[str]) -> NewInput:
    """New input of files, by the reader of the model's data; DataError says which cannot be used."""
    from gapwise.stages.datasets import reader_of
    from gapwise.stages.model.facts import fitting

    with fitting(model.source):
        return reader_of(model.meta["dataset"]).read_new(inputs, model.meta)


def output(word: str) -> Location:
    """The location that -o names. A symbolic link is the link itself, so that nothing is ever written to where it leads."""
    from gapwise.storage.backend import location

    given = Path(word).expanduser()
    return given.parent.resolve() / given.name if "://" not in word and given.is_symlink() else location(word)


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
    """Whether there is a symbolic link at `out`; a folder could not replace it, so it is removed first."""
    return isinstance(out, Path) and out.is_symlink()
