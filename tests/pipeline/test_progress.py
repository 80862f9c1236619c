"""Progress in words: a line every few seconds without a terminal, and everything in the log file."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest

from gapwise.pipeline.progress import Progress, clock, describe, read_solver_line, solver_line, thousands

COUNTERS = {
    "lambda": 2.1e-3,
    "breakpoint": 11,
    "passes": 14.2,
    "gap": 1.2e-3,
    "tolerance": 0.09,
    "oracle_calls": 48_123,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines__come_at_most_every_so_often(tmp_path: Path) -> None:
    stream = io.StringIO()
    with Progress(tmp_path / "log", every=3600, stream=stream) as progress:
        for stage in ("featurize", "verify"):
            progress.stage(stage)
            for done in range(100):
                progress.report(done, 100, "images")
    assert stream.getvalue().splitlines() == ["featurize 0/100 images · 00:00", "verify 0/100 images · 00:00"]
    assert "INFO featurize 0/100 images" in (tmp_path / "log").read_text()


def test_activity__without_counts_gets_one_line_in_all() -> None:
    stream = io.StringIO()
    with Progress(None, every=0.0, stream=stream) as progress:
        for stage in ("solve", "verify"):
            progress.stage(stage)
            for done in (0, 0, 1):
                progress.report(0, 0, "compiling")
                progress.report(done, 2, "blocks")
                progress.report(0, 0, "λ 1")
    words = [line.partition(" · ")[0] for line in stream.getvalue().splitlines()]
    assert words.count("solve compiling") == 1
    assert "verify compiling" not in words
    assert words.count("solve 0/2 blocks") == 2
    assert words.count("λ 1") == 6


def test_terminal__gets_a_bar_and_warnings_and_the_file_gets_lines(tmp_path: Path) -> None:
    stream = Terminal()
    with Progress(tmp_path / "log", every=3600, stream=stream) as progress:
        progress.stage("solve")
        progress.report(3, 0, "λ #4 = 2.1e-03 · epoch 14")
        logging.getLogger("gapwise").warning("MLflow is away")
        progress.close()
    assert "\x1b[" in stream.getvalue()
    assert "MLflow is away" in stream.getvalue()
    assert "λ #4 = 2.1e-03 · epoch 14 · 00:00" in (tmp_path / "log").read_text()


def test_handlers__are_gone_afterwards(tmp_path: Path) -> None:
    before = list(logging.getLogger("gapwise").handlers)
    with Progress(tmp_path / "log", stream=io.StringIO()):
        pass
    assert logging.getLogger("gapwise").handlers == before


def test_solver_line__is_the_one_of_the_design() -> None:
    assert solver_line(COUNTERS, 40) == "λ #12/40 = 2.1e-03 · epoch 14 · gap 1.2e-03, target 9e-02 · 48k oracle calls"
    assert "gap –, target 9e-02" in solver_line({**COUNTERS, "gap": float("inf")})
    nothing = solver_line({**COUNTERS, "gap": float("nan"), "tolerance": float("nan")})
    assert "gap –, target – ·" in nothing, "a method without a dual point"
    assert read_solver_line(nothing)["tolerance"] == "–"


def test_solver_line__says_what_a_gap_is_that_is_not_exact() -> None:
    said = {
        kind: solver_line({**COUNTERS, "gap": 0.012, "certainty": kind})
        for kind in ("exact", "upper-bounded", "estimate")
    }
    assert "· gap 1.2e-02, target 9e-02 ·" in said["exact"]
    assert "· gap ≤ 1.2e-02 (bound), target 9e-02 ·" in said["upper-bounded"]
    assert "· gap ≈ 1.2e-02 (estimate), target 9e-02 ·" in said["estimate"]
    assert "gap –, target 9e-02" in solver_line({**COUNTERS, "gap": float("inf"), "certainty": "estimate"})
    for kind, line in said.items():
        numbers = read_solver_line(line)
        assert (numbers["gap"], numbers["certainty"], numbers["tolerance"]) == ("1.2e-02", kind, "9e-02")


def test_solver_line__is_read_back_from_a_log() -> None:
    for total in (0, 40):
        assert read_solver_line(f"2026 INFO {solver_line(COUNTERS, total)} · 00:42") == {
            "number": 12, "total": total, "lambda": 2.1e-3, "passes": "14", "gap": "1.2e-03", "tolerance": "9e-02",
            "oracle_calls": "48k", "certainty": "exact",
        }  # fmt: skip
    assert read_solver_line("solve compiling, once for these sources · 00:11") is None


@pytest.mark.parametrize(
    ("given", "said"), [((0, 0, "waiting"), "waiting"), ((1234, 0, "words"), "1,234 words"), ((1, 3, "λ 1"), "λ 1")]
)
def test_describe__says_what_is_known(given: tuple[int, int, str], said: str) -> None:
    assert describe(*given) == said


def test_numbers__are_short() -> None:
    assert [thousands(x) for x in (0, 9_999, 48_123, 12e6, 3e10)] == ["0", "9999", "48k", "12M", "30G"]
    assert [clock(x) for x in (0, 42.9, 3599, 3600)] == ["00:00", "00:42", "59:59", "1:00:00"]
