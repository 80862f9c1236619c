"""The comparison with practitioners' packages (`tests/benchmarks/practice`) on tiny data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "benchmarks" / "practice"


def letters(folder: Path) -> None:
    """Words of three letters in the form of the publisher's file, a letter a row of its own pixels and noise."""
    rng, lines = np.random.default_rng(0), []
    for word in range(400):
        for position in range(1, 4):
            letter = int(rng.integers(0, 4))
            pixels = rng.random(128) < 0.1
            pixels[8 * letter : 8 * letter + 8] |= rng.random(8) < 0.7
            after = len(lines) + 2 if position < 3 else -1
            head = [len(lines) + 1, "abcd"[letter], after, word + 1, position, word % 10]
            lines.append("\t".join(map(str, [*head, *pixels.astype(int)])) + "\t")
    folder.mkdir()
    (folder / "letter.data").write_text("\n".join(lines) + "\n")


@pytest.mark.slow
def test_practice__measures_once_and_leaves_out_what_has_no_data(tmp_path: Path) -> None:
    letters(tmp_path / "ocr")
    words = ["--tiny", "--tasks", "ocr_small", "usps", "--who", "gapwise", "liblinear"]
    env = {**os.environ, "GAPWISE_DATA": str(tmp_path)}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(SCRIPT), str(tmp_path / "out"), *words],
            env=env, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    first = run()
    assert first.returncode == 0, first.stderr
    numbers = json.loads((tmp_path / "out" / "practice.json").read_text())["records"]
    (ours,), (peer,) = numbers["ocr_small"]["gapwise"], numbers["ocr_small"]["liblinear"]
    assert max(ours["figures"]["letter error"], peer["figures"]["letter error"]) < 0.5  # of four letters 0.75 is chance
    assert peer["setting"].startswith("C = ")
    assert not numbers["usps"]["gapwise"]
    assert "dataset.root: must be given" in first.stderr
    (record,) = (tmp_path / "out" / "ocr_small").glob("gapwise-*")
    before = record.stat().st_mtime_ns
    assert run().returncode == 0
    assert record.stat().st_mtime_ns == before
