"""``gapwise report RUN``: make the report of a run or of a sweep again, and say where it is."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from gapwise.pipeline.cli import Command
from gapwise.pipeline.overview.states import add_root, add_run

if TYPE_CHECKING:
    from gapwise.pipeline.rundir import RunDir
    from gapwise.storage.backend import Location
    from gapwise.storage.features import Features


def arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "run", more="; or the folder of a sweep")
    add_root(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write this file; report.html in RUN stays as it is")
    parser.add_argument("--figures", metavar="FORMATS", help="also draw the run's figures again, e.g. as png,pdf")
    parser.add_argument("--open", action="store_true", help="show it in the browser")


def run(asked: argparse.Namespace) -> int:
    from gapwise.pipeline.overview.find import named
    from gapwise.storage.backend import location

    folder = location(asked.run)
    target = None if asked.output is None else location(asked.output)
    if (folder / "summary.json").is_file():
        from gapwise.stages.reports.page.sweep import write_sweep_report

        made = write_sweep_report(folder, target)
    else:
        run_dir = named(asked.run, asked.root)
        made = of_run(run_dir, target)
        if asked.figures:
            draw_again(run_dir, asked.figures.split(","))
    print(f"report: {made}", flush=True)
    if asked.open:
        import webbrowser
        from pathlib import Path

        webbrowser.open(Path(made).resolve().as_uri() if isinstance(made, Path) else str(made))
    return 0


def of_run(run_dir: Location, target: Location | None) -> Location:
    """Write the report of a run. In its own directory it replaces the stage's, so the manifest gets its checksum."""
    from gapwise.pipeline.rundir import RunDir, locked
    from gapwise.stages.report import write_report

    if target is not None:
        return write_report(run_dir, features(RunDir.opened(run_dir)), target)
    with locked(run_dir / "lock"):
        began, directory = time.monotonic(), RunDir.opened(run_dir)
        made = write_report(run_dir, features(directory))
        if "evaluate" in directory.manifest["stages"]:
            directory.record("report", seconds=round(time.monotonic() - began, 3), report=made.name)
    return made


def draw_again(run_dir: Location, formats: list[str]) -> None:
    """Draw the figures of a run in these formats; ValueError for an unknown format, or if its features are gone."""
    from gapwise.pipeline.rundir import RunDir, locked
    from gapwise.stages.reports import FORMATS
    from gapwise.stages.reports.figures import draw

    if unknown := [form for form in formats if form not in FORMATS]:
        raise ValueError(f"--figures: expected some of {', '.join(FORMATS)}, got {unknown[0]!r}")
    with locked(run_dir / "lock"):
        stored = features(RunDir.opened(run_dir))
        if stored is None:
            raise ValueError(f"{run_dir}: its features are gone, and figures need them; run.until=featurize makes them")
        draw(run_dir, stored, tuple(formats))


def features(run: RunDir) -> Features | None:
    """The features of a run; None if they are gone, or were never made."""
    from gapwise.storage.features import features_of

    facts = run.manifest["stages"].get("featurize")
    return None if facts is None else features_of(run.path, facts)


COMMAND = Command("Makes the report of a run or a sweep, one HTML file for people.", arguments, run)
