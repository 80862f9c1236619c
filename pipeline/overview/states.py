"""The states of a run, and the arguments by which commands find runs; imports nothing, so that --help comes at once."""

from __future__ import annotations

import argparse

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
RUN = "folder, beginning of its name or key, or @latest"
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
    """A positional argument that names a run, or several."""
    parser.add_argument(name, nargs=nargs, metavar=metavar, help=help + more)


def add_root(parser: argparse.ArgumentParser) -> None:
    """The argument --root, for commands that look for runs."""
    parser.add_argument(
        "--root", metavar="FOLDER", help="folder or URL of the run directories (default: $GAPWISE_RUNS, else runs)"
    )
