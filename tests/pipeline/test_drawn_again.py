"""A sweep's figures are drawn again if its runs, the figure that is asked for or the code that draws have changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gapwise.pipeline.sweep.run import drawn_from
from gapwise.stages import reports


def test_drawn_from__knows_runs_figure_and_the_code_that_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"run": "runs/a", "gap": 0.1, "status": "complete", "seconds": 1.0}
    whole: Any = SimpleNamespace(rows=[row], figure="solvers", formats=("png",))
    before = drawn_from(whole)
    assert drawn_from(SimpleNamespace(**{**vars(whole), "rows": [row | {"status": "done", "seconds": 2.0}]})) == before
    for other in ({"rows": [row | {"gap": 0.2}]}, {"figure": "paths"}, {"formats": ("png", "svg")}):
        assert drawn_from(SimpleNamespace(**{**vars(whole), **other})) != before
    (folder,) = reports.__path__
    copy = Path(shutil.copytree(folder, tmp_path / "reports"))
    monkeypatch.setattr(reports, "__path__", [str(copy)])
    assert drawn_from(whole) == before
    with (copy / "curves.py").open("a") as file:
        file.write("# other code\n")
    assert drawn_from(whole) != before
