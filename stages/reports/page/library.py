"""Vega-Lite as one JavaScript text, to be inlined: it comes with the Python package vl-convert-python.

Bundling takes a second or two, so the result is kept in the user's cache folder, with its checksum in the first line.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from gapwise.stages.reports.chart_files import vega_files
from gapwise.storage.files import aside, publish


@cache
def vega() -> str:
    """A module that defines ``window.vegaEmbed``; the same bytes for the same version of vl-convert-python."""
    file = _folder() / f"vega-{version('vl-convert-python')}.js"
    if (text := _read(file)) is not None:
        return text
    bundle = vega_files({}, bundle=True)["bundle"].decode()
    if "</script" in bundle.lower() or "<!--" in bundle:
        raise ValueError(
            "vl-convert-python: its JavaScript would end the script element that holds it; take another version"
        )
    with contextlib.suppress(OSError):  # a folder that cannot be written costs the next report a second
        file.parent.mkdir(parents=True, exist_ok=True)
        aside(file).write_text(f"{_seal(bundle)}\n{bundle}", encoding="utf-8", newline="\n")
        publish(file)
    return bundle


def _folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "gapwise"


def _read(file: Path) -> str | None:
    """The stored bundle; None if it is missing or has been changed."""
    try:
        seal, _, bundle = file.read_bytes().decode().partition("\n")
    except (OSError, ValueError):
        return None
    return bundle if seal == _seal(bundle) else None


def _seal(bundle: str) -> str:
    return f"// sha256 {hashlib.sha256(bundle.encode()).hexdigest()}"
