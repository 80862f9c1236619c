"""Charts as PNG, PDF and SVG files, drawn by Vega in a process of its own (`vega_process`)."""

from __future__ import annotations

import base64
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gapwise.stages.reports.vega import Chart, Spec, as_picture, plain
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

log = logging.getLogger("gapwise")
PROCESS = Path(__file__).with_name("vega_process.py")


class VegaError(OSError):
    """Vega could not be run, or refused a specification."""


def save_charts(charts: Mapping[str, Chart], folder: Location, formats: Sequence[str]) -> list[Location]:
    """Draw each chart into ``folder/<name>.<format>``, atomically; equal charts are equal bytes.

    Where Vega cannot be run, nothing is written but a line in the log: a run is complete without its pictures.

    Returns
    -------
    list of Path or UrlPath
        The files that were written.
    """
    if not charts:
        return []
    pictures = {name: as_picture(chart) for name, chart in charts.items()}
    try:
        made = vega_files({f"{name}.{form}": spec for name, spec in pictures.items() for form in formats})
    except VegaError as error:
        log.warning("figures: %s are missing: %s", ", ".join(charts), error)
        return []
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        aside(folder / name).write_bytes(content)
        publish(folder / name)
    return [folder / name for name in made]


def vega_files(specs: Mapping[str, Spec], bundle: bool = False) -> dict[str, bytes]:
    """The file of each specification, in the format of its suffix; with `bundle` also Vega's JavaScript."""
    jobs = json.dumps({"files": plain(specs), "bundle": bundle}, allow_nan=False)
    done = subprocess.run([sys.executable, "-P", str(PROCESS)], input=jobs, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise VegaError(f"vl-convert was ended by {name}; it reserves tens of GB of addresses (see ulimit -v)")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise VegaError(f"vl-convert ended with exit code {done.returncode}: {said[-1] if said else 'it said nothing'}")
    return {name: base64.b64decode(content) for name, content in json.loads(done.stdout).items()}
