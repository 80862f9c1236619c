"""Charts as PNG, PDF and SVG files, drawn by Vega in a process of its own (`vega_process`)."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from gapwise.stages.reports.vega import Chart, Spec, as_picture, plain
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish

PROCESS = Path(__file__).with_name("vega_process.py")


class VegaError(RuntimeError):
    """Vega could not be run, or refused a specification."""


def save_charts(charts: Mapping[str, Chart], folder: Location, formats: Sequence[str]) -> list[Location]:
    """Draw each chart into ``folder/<name>.<format>``, atomically; equal charts are equal bytes.

    Raises
    ------
    VegaError
        If Vega fails; then nothing is written.
    """
    if not charts:
        return []
    pictures = {name: as_picture(chart) for name, chart in charts.items()}
    made = vega_files({f"{name}.{form}": spec for name, spec in pictures.items() for form in formats})
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in made.items():
        aside(folder / name).write_bytes(content)
        publish(folder / name)
    return [folder / name for name in made]


def vega_files(specs: Mapping[str, Spec], bundle: bool = False) -> dict[str, bytes]:
    """The file of each specification, whose name's ending says its format; with `bundle` also Vega's JavaScript."""
    jobs = json.dumps({"files": plain(specs), "bundle": bundle}, allow_nan=False)
    done = subprocess.run([sys.executable, "-P", str(PROCESS)], input=jobs, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise VegaError(f"vl-convert ended with exit code {done.returncode}: {said[-1] if said else 'it said nothing'}")
    return {name: base64.b64decode(content) for name, content in json.loads(done.stdout).items()}
