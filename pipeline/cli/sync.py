"""``gapwise sync``: shows stored runs in MLflow, without their configuration or data.

A stranger's run could name any server, and MLflow would import what the URI's scheme asks for and send the user's
credentials there; or any database here, which MLflow would change. So no file of a run says where it is shown.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.errors import one_line
from gapwise.pipeline.overview.states import add_root, add_run
from gapwise.pipeline.overview.tables import as_json

if TYPE_CHECKING:
    from gapwise.storage.backend import Location


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "runs", nargs="+")
    add_root(parser)
    parser.add_argument(
        "--uri", help="MLflow's store, as of a run with tracking.uri (default: mlflow.db, as for a run)"
    )
    parser.add_argument("--json", action="store_true", help="a list of objects: run, uri, status, error")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.config.run_options import TrackingOptions
    from gapwise.pipeline.overview.find import all_named
    from gapwise.pipeline.tracking.mlflow import store_uri

    uri = store_uri(TrackingOptions("mlflow", asked.uri))
    outcomes = [synced(path, uri) for path in all_named(asked.runs, asked.root)]
    if asked.json:
        print(as_json(outcomes))
    else:
        for each in outcomes:
            print(f"{each['run']}: {each['error'] or 'shown in ' + each['uri'] + ' as ' + each['status']}")
    return 1 if any(each["error"] for each in outcomes) else 0


def synced(path: Location, uri: str) -> dict[str, str]:
    """Show one run: where, as what, or the error that prevented it."""
    from gapwise.pipeline.config.run_options import TrackingOptions
    from gapwise.pipeline.overview.run_state import run_state
    from gapwise.pipeline.rundir import RunDir
    from gapwise.pipeline.tracking.mlflow import Tracker
    from gapwise.storage.files import LockedError, locked

    said = {"run": str(path), "uri": uri, "status": "", "error": ""}
    try:
        with locked(path / "lock"):
            directory = RunDir.opened(path)
            done = run_state(path).result is not None and directory.damaged() is None
            said["status"] = "FINISHED" if done else "KILLED"
            Tracker(TrackingOptions("mlflow", uri), directory).sync(said["status"])
    except (LockedError, ValueError, OSError) as error:
        said["error"] = f"error: {one_line(error)}"
    return said


COMMAND = Command("Shows stored runs in MLflow.", arguments, run)
