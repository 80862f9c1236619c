"""The examples and the notebooks run, as a user would run them."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NOTEBOOKS = {"ocr": True, "own_oracle": False, "horses": False}
"""Whether each needs real data."""


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder from which this tree's gapwise is imported, here and in other processes, whatever is installed."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / ".src"))
    return ROOT / ".src"


def lines_of(name: str) -> list[str]:
    text = (HERE / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith(('"""', "import"))]


def test_own_oracle__runs(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(HERE / "own_oracle.py"))
    said = capsys.readouterr().out
    assert float(said.split()[0]) > 0.8
    assert "verified=True" in said
    assert len(lines_of("own_oracle.py")) <= 20


@pytest.mark.slow
def test_ocr__beats_crfsuite(
    installed: Path, shared_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn_crfsuite")
    monkeypatch.setattr("sys.argv", ["", str(shared_data / "ocr" / "letter.data.gz")])
    runpy.run_path(str(HERE / "ocr_in_ten_lines.py"))
    said = capsys.readouterr().out
    ours, theirs = (float(re.search(rf"{name}: ([\d.]+)", said)[1]) for name in ("gapwise", "crfsuite"))
    assert ours > theirs > 0.7
    assert "verified: True" in said


def test_notebooks__are_all_run_and_hold_no_output() -> None:
    assert sorted(file.stem for file in HERE.glob("*.ipynb")) == sorted(NOTEBOOKS)
    for name in NOTEBOOKS:
        cells = json.loads((HERE / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []


CELLS = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        InteractiveShell.instance().run_cell("".join(cell["source"])).raise_error()
"""
"""Runs the cells of a notebook and prints what they show."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_notebook__runs(name: str, installed: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    env = {**os.environ, "MPLBACKEND": "agg"}
    if NOTEBOOKS[name]:
        env.setdefault("GAPWISE_DATA", str(request.getfixturevalue("shared_data")))
    command = [sys.executable, "-c", CELLS, str(HERE / f"{name}.ipynb")]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "verified=True" in done.stdout
