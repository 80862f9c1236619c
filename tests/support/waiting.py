"""Other processes: a new Python that does something, and waiting for one, for a thread or for a file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 540.0
"""Longest wait for anything, in seconds: compiling takes minutes on a busy machine; pytest-timeout ends a test after 600."""


def wait_for(
    condition: Callable[[], object],
    process: subprocess.Popen[Any] | None = None,
    seconds: float = PATIENCE,
    every: float = 0.01,
) -> None:
    """Wait until `what` holds, asking at intervals of `every` seconds; fails if `process` ends first, or after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, f"it ended too early: {process.communicate()}"
        assert time.monotonic() < end, "it never came to that"
        time.sleep(every)


def python(*words: object, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """What a new Python does with these words, which must succeed; it finds this clone and tests/support."""
    path = os.pathsep.join(str(ROOT / part) for part in (".src", "tests/support"))
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env={**os.environ, "PYTHONPATH": path, **env}, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done
