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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from configs import composed
from matplotlib.figure import Figure
from omegaconf import DictConfig
from real_runs import Done, Sandbox

from gapwise.pipeline.run import run
from gapwise.stages.reports import run_figures
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, publish


@functools.cache
def _configuration(words: tuple[str, ...]) -> DictConfig:
    return composed(*words)


@contextlib.contextmanager
def _not_rendered(target: Location, size: tuple[float, float], dpi: int = 130) -> Iterator[Figure]:
    """Like `stages.reports.paint.figure_in`, which takes a second for the figures of a run, but the file is empty."""
    yield Figure(figsize=size)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside(target).write_bytes(b"")
    publish(target)


def _not_drawn(charts: Mapping[str, object], folder: Location, formats: Sequence[str]) -> list[Location]:
    """Like `stages.reports.chart_files.save_charts`, which takes a second, but the files are empty."""
    for name in charts:
        for form in formats:
            aside(folder / f"{name}.{form}").parent.mkdir(parents=True, exist_ok=True)
            aside(folder / f"{name}.{form}").write_bytes(b"")
            publish(folder / f"{name}.{form}")
    return [folder / f"{name}.{form}" for name in charts for form in formats]


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
                with patch.multiple(run_figures, figure_in=_not_rendered, save_charts=_not_drawn):
                    code = run(cfg)
            finally:
                log.removeHandler(screen)
        return Done(code, out.getvalue(), err.getvalue())


def here(sandbox: Sandbox) -> Here:
    """The same sandbox, whose commands run in this process."""
    return Here(sandbox.root, sandbox.command)
