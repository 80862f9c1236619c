"""The same commands without a process each: `pipeline.run.run` called in this one.

What a fault does to files is the same either way, and the command reads everything again from them; only the seconds of
starting Python, importing, loading kernels and rendering figures are saved. Kills, signals, disks and locks are tried with
real processes.
"""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from configs import composed
from omegaconf import DictConfig
from real_runs import Done, Sandbox

from gapwise.pipeline.run import run
from gapwise.pipeline.rundir import read_json
from gapwise.stages.reports import figures
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish


@functools.cache
def _configuration(words: tuple[str, ...]) -> DictConfig:
    return composed(*words)


def _not_drawn(
    draw: object, target: Location, size: object, formats: Sequence[str] = ("png",), dpi: int = 0
) -> list[Location]:
    """Like `stages.reports.paint.save`, which takes a second for the figures of a run, but the files are empty."""
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [target.parent / f"{target.name.removesuffix('.png')}.{form}" for form in formats]
    for file in files:
        aside(file).write_bytes(b"")
        publish(file)
    return files


class Here(Sandbox):
    """A sandbox whose commands run in this process, except those that are started, wrapped or given options of Popen."""

    def issue(self, *more: str, wrap: tuple[str, ...] = (), **options: Any) -> Done:
        if wrap or options or self.env:
            return super().issue(*more, wrap=wrap, **options)
        cfg = _configuration((*self.command, *more)).copy()
        cfg.run.root = str(self.root)
        self.root.mkdir(exist_ok=True)
        out, err, log = io.StringIO(), io.StringIO(), logging.getLogger("gapwise")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("default")
            screen = logging.StreamHandler(err)  # pytest's own handlers keep warnings from stderr
            screen.setLevel(logging.WARNING)
            log.addHandler(screen)
            try:
                with patch.object(figures, "save", _not_drawn):
                    code = run(cfg)
            finally:
                log.removeHandler(screen)
        return Done(code, out.getvalue(), err.getvalue())


def issued(root: Path, *words: str) -> tuple[Path, str]:
    """The run directory below `root` of a command, which must succeed, and what it says."""
    said = Here(root, [*words]).finish().out
    return Path(said.rsplit("run: ", 1)[1].strip()), said


def result_of(run: Path) -> dict[str, Any]:
    """The content of result.json, whose seal must hold."""
    result = read_json(run / "result.json", seal=True)
    assert isinstance(result, dict)
    return result


def here(sandbox: Sandbox) -> Here:
    """The same sandbox, whose commands run in this process."""
    return Here(sandbox.root, sandbox.command)
