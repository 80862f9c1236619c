"""The states of a run, and the arguments by which commands find runs; imports nothing, so that --help comes at once."""

from __future__ import annotations

import argparse
import os

STATES = {
    "complete": "every stage is done",
    "running": "a process works on it",
    "silent": "its lock names a process of another machine, of which nothing was heard for ten minutes",
    "partial": "a command ended as asked before the last stage; resumable",
    "interrupted": "stopped or killed; the same command goes on from the last commit",
    "failed": "a command ended with an error; resumable once its cause is gone",
    "damaged": "a file is damaged or missing; the same command makes it again",
    "unreadable": "you may not read its files",
    "other version": "written by a Gapwise with another format on disk",
    "foreign": "not a run",
}
RESUMABLE = ("partial", "interrupted", "failed", "damaged")
RUN = "folder, or beginning of its name or key"
"""How a run is named on a command line (`pipeline.overview.find.named`)."""


def add_run(
    parser: argparse.ArgumentParser,
    name: str,
    nargs: str | None = None,
    *,
    help: str = RUN,
    more: str = "",
    metavar: str = "RUN",
) -> None:
    """A positional argument that names a run, or several; a shell completes the names of runs."""
    made = parser.add_argument(name, nargs=nargs, metavar=metavar, help=help + more)
    made.completer = _names  # type: ignore[attr-defined]


def add_root(parser: argparse.ArgumentParser) -> None:
    """The argument --root, for commands that look for runs."""
    made = parser.add_argument(
        "--root", metavar="FOLDER", help="folder or URL of the run directories (default: $GAPWISE_RUNS, else runs)"
    )
    made.completer = _folders  # type: ignore[attr-defined]


def _names(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Names of the runs in a folder of this machine."""
    root = parsed_args.root or os.environ.get("GAPWISE_RUNS") or "runs"
    if not os.path.isdir(root):
        return []
    return [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name, "manifest.json"))]


def _folders(prefix: str, **_: object) -> list[str]:
    from argcomplete.completers import DirectoriesCompleter

    return list(DirectoriesCompleter()(prefix))
