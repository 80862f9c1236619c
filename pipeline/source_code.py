"""Which commit of Gapwise runs, for a run's manifest."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 5.0
"""How long git may take."""


@functools.cache
def commit(root: Path = ROOT) -> str | None:
    """The commit that is checked out at `root`, with `-dirty` behind it if files differ; None if it is no git checkout."""
    if not (root / ".git").exists():  # installed: a repository further up is another project's
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
