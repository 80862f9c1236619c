"""`+experiment=practice`: its options, the page and its numbers, the machinery on tiny data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from configs import composed

from gapwise.pipeline.config.settings import CONF
from gapwise.pipeline.practice.page import page
from gapwise.pipeline.practice.run import PracticeOptions
from gapwise.pipeline.practice.table import TASKS

ROOT = CONF.parent


def test_options__are_those_of_conf_and_refused_by_name() -> None:
    options = PracticeOptions(**composed("+experiment=practice").practice)
    options.check()
    assert options.tasks == [*TASKS]
    for given, said in (
        ({"size": "small"}, r"practice\.size: expected one of tiny, full, got 'small'"),
        ({"only": ["ocr"]}, r"practice\.only: there is no 'ocr'; there are: ocr_small"),
        ({"who": ["crf"]}, r"practice\.who: there is no 'crf'; there are: gapwise"),
        ({"seconds": 0.0}, r"practice\.seconds: expected CPU seconds > 0, got 0\.0"),
    ):
        with pytest.raises(ValueError, match=said):
            PracticeOptions(**given).check()


def test_page__is_what_its_numbers_say() -> None:
    numbers = json.loads((ROOT / ".github" / "results" / "practice.json").read_text())
    assert numbers["size"] == "full"
    assert (ROOT / ".github" / "results" / "PRACTICE.md").read_text(encoding="utf-8") == page(numbers)


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
def test_practice__measures_and_says_who_is_left_out(tmp_path: Path) -> None:
    letters(tmp_path / "ocr")
    given = ("practice.size=tiny", "practice.only=[ocr_small,usps]", "practice.who=[gapwise,liblinear]")
    command = [sys.executable, "-m", "pipeline", "+experiment=practice", *given, "practice.record=here"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GAPWISE_RUNS": str(tmp_path / "runs"), "GAPWISE_DATA": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "runs" / "practice" / "tiny"
    assert done.stdout.splitlines()[-1] == f"practice: {folder / 'PRACTICE.md'}"
    numbers = json.loads((folder / "practice.json").read_text())
    assert (tmp_path / "here" / "PRACTICE.md").read_text(encoding="utf-8") == page(numbers)
    measured = {r["who"]: r["figures"]["letter error"] for r in numbers["records"] if "figures" in r}
    assert [*measured] == ["gapwise", "liblinear"]
    assert max(measured.values()) < 0.5  # of four letters 0.75 is chance
    (left_out,) = (r for r in numbers["records"] if "left_out" in r)
    assert left_out["task"] == "usps"
    assert "dataset.root: must be given" in left_out["left_out"]
