"""A checkout laid out as a wheel installs it, for processes that should import it whatever is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("conf", "pipeline", "stages", "storage")
UNWANTED = shutil.ignore_patterns("__pycache__")


def linked(folder: Path, source: Path = ROOT) -> str:
    """`folder` with a package `gapwise` made of links into `source`; for PYTHONPATH."""
    (folder / "gapwise").mkdir(parents=True)
    for file in (source / "pipeline" / "api").glob("*.py"):
        (folder / "gapwise" / file.name).symlink_to(file)
    for room in ROOMS:
        (folder / "gapwise" / room).symlink_to(source / room)
    return str(folder)


def copied(folder: Path, source: Path = ROOT) -> str:
    """The same as a copy, which may be edited."""
    shutil.copytree(source / "pipeline" / "api", folder / "gapwise", ignore=UNWANTED)
    for room in ROOMS:
        shutil.copytree(source / room, folder / "gapwise" / room, ignore=UNWANTED)
    return str(folder)
