"""The examples and the notebooks run, as a user would run them."""

from __future__ import annotations

import os
import re
import runpy
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


@pytest.mark.long
def test_ocr__beats_crfsuite(
    installed: Path, shared_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn_crfsuite")
    monkeypatch.setattr("sys.argv", ["", str(shared_data / "ocr" / "ocr_letters.npz")])
    runpy.run_path(str(HERE / "ocr_in_ten_lines.py"))
    said = capsys.readouterr().out
    ours, theirs = (float(re.search(rf"{name}: ([\d.]+)", said)[1]) for name in ("gapwise", "crfsuite"))
    assert ours > theirs > 0.7
    assert "verified: True" in said


def test_notebooks__are_all_run_and_hold_no_output() -> None:
    assert sorted(file.stem for file in HERE.glob("*.ipynb")) == sorted(NOTEBOOKS)
    nbformat = pytest.importorskip("nbformat")
    for name in NOTEBOOKS:
        cells = nbformat.read(HERE / f"{name}.ipynb", as_version=4).cells
        assert [cell for cell in cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_notebook__runs(name: str, installed: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    if NOTEBOOKS[name]:
        os.environ.setdefault("GAPWISE_DATA", str(request.getfixturevalue("shared_data")))
    book = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
    client.NotebookClient(book, timeout=500, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = "".join(str(cell.get("outputs", "")) for cell in book.cells)
    assert "verified=True" in said
    assert "Traceback" not in said
