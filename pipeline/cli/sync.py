"""``gapwise sync``: shows stored runs in MLflow, without their configuration or data."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import add_root, add_run
from gapwise.pipeline.overview.words import as_json

if TYPE_CHECKING:
    from gapwise.storage.backend import Location


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "runs", nargs="+")
    add_root(parser)
    parser.add_argument(
        "--uri",
        help="MLflow's store (default: $MLFLOW_TRACKING_URI if the run was shown there, else mlflow.db, as for a run)",
    )
    parser.add_argument("--json", action="store_true", help="a list of objects: run, uri, status, error")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import all_named

    outcomes = [synced(path, asked.uri) for path in all_named(asked.runs, asked.root)]
    if asked.json:
        print(as_json(outcomes))
    else:
        for each in outcomes:
            print(f"{each['run']}: {each['error'] or 'shown in ' + each['uri'] + ' as ' + each['status']}")
    return 1 if any(each["error"] for each in outcomes) else 0


def synced(path: Location, uri: str | None) -> dict[str, str]:
    """Show one run: where, as what, or the error that prevented it."""
    from gapwise.pipeline.config.run_options import TrackingOptions
    from gapwise.pipeline.overview.run_state import run_state
    from gapwise.pipeline.rundir import RunDir
    from gapwise.pipeline.tracking.mlflow import Tracker
    from gapwise.storage.files import LockedError, locked

    said = {"run": str(path), "uri": "", "status": "", "error": ""}
    try:
        said["uri"] = where = uri or store_of(path)
        with locked(path / "lock"):
            run = run_state(path)
            if not run.manifest:
                raise ValueError(run.why)
            directory = RunDir(path, str(run.manifest["key"]))
            directory.manifest = dict(run.manifest)
            done = run.result is not None and directory.damaged() is None
            said["status"] = "FINISHED" if done else "KILLED"
            Tracker(TrackingOptions("mlflow", where), directory).sync(said["status"])
    except (LockedError, ValueError, OSError) as error:
        said["error"] = f"error: {' '.join(str(error).split())}"
    return said


def store_of(path: Location) -> str:
    """The user's own MLflow store: mlflow.db, where a run shows itself by default, or $MLFLOW_TRACKING_URI.

    A stranger's run could name any server, and MLflow would import what the URI's scheme asks for and send the user's
    credentials there; or any database here, which MLflow would change. So ValueError if the run's files name another store.
    """
    from gapwise.pipeline.config.run_options import TrackingOptions
    from gapwise.pipeline.tracking.mlflow import store_uri

    own, named = store_uri(TrackingOptions("mlflow")), _named_store(path)
    if named in (None, own, os.environ.get("MLFLOW_TRACKING_URI")):
        return named or own
    raise ValueError(
        f"the run's files name the MLflow store {named!r}, and yours is {own!r}; give the one to write to as --uri, such as "
        f"--uri {shlex.quote(str(named))}"
    )


def _named_store(path: Location) -> str | None:
    from omegaconf import OmegaConf

    from gapwise.storage.files import listed, read_json

    marker = path / "tracking.json"
    if marker.is_file():
        shown = read_json(marker)
        if isinstance(shown, dict) and shown.get("uri"):
            return str(shown["uri"])
    for config in reversed(listed(path, "invocations/*/.hydra/config.yaml")):
        # without interpolations, which could put the user's environment into the URI
        stored = OmegaConf.to_container(OmegaConf.create(config.read_text(encoding="utf-8")), resolve=False)
        tracking = stored.get("tracking") if isinstance(stored, dict) else None
        uri = tracking.get("uri") if isinstance(tracking, dict) else None
        return None if uri is None or "${" in str(uri) else str(uri)
    return None


COMMAND = Command("Shows stored runs in MLflow.", arguments, run)
