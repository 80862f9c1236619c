"""Progress in words: a line every few seconds without a terminal, and everything in the log file."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from gapwise.pipeline.progress import Progress, clock, describe, solver_line, thousands

COUNTERS = {
    "lambda": 2.1e-3, "breakpoint": 11, "passes": 14.2, "gap": 1.2e-3, "tolerance": 0.09, "oracle_calls": 48_123,
}  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines__come_at_most_every_so_often_and_compiling_once(tmp_path: Path) -> None:
    stream = io.StringIO()
    with Progress(tmp_path / "log", every=3600, stream=stream) as progress:
        for stage in ("featurize", "verify"):
            progress.stage(stage)
            for done in range(100):
                progress.report(done, 100, "images")
    assert stream.getvalue().splitlines() == ["featurize 0/100 images · 00:00", "verify 0/100 images · 00:00"]
    assert "INFO featurize 0/100 images" in (tmp_path / "log").read_text()
    with Progress(None, every=0.0, stream=stream) as progress:
        progress.stage("solve")
        for _ in range(3):
            progress.report(0, 0, "compiling")
            progress.report(0, 0, "λ 1")
    words = [line.partition(" · ")[0] for line in stream.getvalue().splitlines()]
    assert (words.count("solve compiling"), words.count("λ 1")) == (1, 3)


def test_terminal__gets_a_bar_and_warnings_and_the_file_gets_lines(tmp_path: Path) -> None:
    stream, before = Terminal(), [*logging.getLogger("gapwise").handlers]
    with Progress(tmp_path / "log", every=3600, stream=stream) as progress:
        progress.stage("solve")
        progress.report(3, 0, "λ #4 = 2.1e-03 · epoch 14")
        logging.getLogger("gapwise").warning("MLflow is away")
        progress.close()
    assert "\x1b[" in stream.getvalue()
    assert "MLflow is away" in stream.getvalue()
    assert "λ #4 = 2.1e-03 · epoch 14 · 00:00" in (tmp_path / "log").read_text()
    assert logging.getLogger("gapwise").handlers == before


@pytest.mark.parametrize(
    ("kind", "said"),
    [("exact", "1.2e-02"), ("upper-bounded", "≤ 1.2e-02 (bound)"), ("estimate", "≈ 1.2e-02 (estimate)")],
)
def test_solver_line__says_what_its_gap_is(kind: str, said: str) -> None:
    line = solver_line({**COUNTERS, "gap": 0.012, "certainty": kind}, 40)
    assert line == f"λ #12/40 = 2.1e-03 · epoch 14 · gap {said}, target 9e-02 · 48k oracle calls"
    nothing = solver_line({**COUNTERS, "gap": float("nan"), "tolerance": float("nan")})
    assert "gap –, target – ·" in nothing, "a method without a dual point"
    relative = solver_line({**COUNTERS, "gap": 0.012, "relative": True})
    assert "gap 1.2e-02, target 9e-02 (shares of the objective) ·" in relative


def test_numbers__are_short() -> None:
    assert [thousands(x) for x in (0, 9_999, 48_123, 12e6, 3e10)] == ["0", "9999", "48k", "12M", "30G"]
    assert [clock(x) for x in (0, 42.9, 3599, 3600)] == ["00:00", "00:42", "59:59", "1:00:00"]
    assert describe(1234, 0, "words") == "1,234 words"
