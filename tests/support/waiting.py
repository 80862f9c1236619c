"""Waiting for another process, thread or file."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

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
