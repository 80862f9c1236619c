"""``gapwise report RUN``: make the report of a run or of a sweep again, and say where it is."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from pipeline.cli import Command
from pipeline.overview.states import RUN, add_root

if TYPE_CHECKING:
    from storage.backend import Location


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=f"{RUN}; or the folder of a sweep")
    add_root(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write this file; report.html in RUN stays as it is")
    parser.add_argument("--open", action="store_true", help="show it in the browser")


def run(asked: argparse.Namespace) -> int:
    from pipeline.overview.find import named
    from storage.backend import location

    place = location(asked.run)
    target = None if asked.output is None else location(asked.output)
    if (place / "summary.json").is_file():
        from stages.reports.page.sweep import write_sweep_report

        made = write_sweep_report(place, target)
    else:
        made = of_run(named(asked.run, asked.root), target)
    print(f"report: {made}", flush=True)
    if asked.open:
        import webbrowser
        from pathlib import Path

        webbrowser.open(Path(made).resolve().as_uri() if isinstance(made, Path) else str(made))
    return 0


def of_run(place: Location, target: Location | None) -> Location:
    """Write the report of a run. In its own directory it replaces the stage's, so the manifest gets its checksum."""
    from pipeline.rundir import RunDir, locked, read_json
    from stages.reports.page import write_report

    manifest: dict[str, Any] | None = read_json(place / "manifest.json", seal=True)
    if manifest is None:
        raise FileNotFoundError(
            f"{place / 'manifest.json'}: missing, so nothing is known of this run; give its command again"
        )
    if target is not None:
        return write_report(place, features_of(place, manifest), target)
    with locked(place / "lock"):
        began = time.monotonic()
        made = write_report(place, features_of(place, manifest))
        directory = RunDir(place, str(manifest["key"]))
        directory.manifest = manifest
        if "evaluate" in manifest["stages"]:
            directory.record("report", seconds=round(time.monotonic() - began, 3), report=made.name)
    return made


def features_of(place: Location, manifest: dict[str, Any]) -> Any:
    """The features of a run: where the manifest says, or beside the run if both have moved; None if they are gone."""
    from storage.backend import location
    from storage.features import is_complete, open_features

    said = manifest["stages"].get("featurize", {}).get("path")
    if said is None:
        return None
    there = location(said)
    for path in (there, place.parent / "features" / there.name):
        if is_complete(path):
            return open_features(path)
    return None


COMMAND = Command("Makes the report of a run or a sweep, one HTML file for people.", arguments, run)
