"""On real data, a path takes as many lambdas and passes as before: numbers that depend on no clock."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import composed

from gapwise.pipeline.run import run
from gapwise.storage.results import read_path


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "breakpoints", "passes"), [("two_sided", 7, 30.6), ("paper", 154, 222.5)])
def test_ocr_small__takes_as_many_passes_as_before(
    shared_data: Path, tmp_path: Path, rule: str, breakpoints: int, passes: float
) -> None:
    """Rounding moves the passes: between two processors by up to 6.6 %."""
    words = [f"dataset.root={shared_data / 'ocr'}", f"run.root={tmp_path}", "tracking=none", "run.until=solve"]
    assert run(composed("+experiment=regpath_ocr", f"path.rule={rule}", "path.eps=0.1", *words)) == 0
    (target,) = tmp_path.glob("*/path.zarr")
    made = read_path(target, ("effective_passes",))[0]["effective_passes"]
    assert (made.size, made.sum()) == (pytest.approx(breakpoints, rel=0.02), pytest.approx(passes, rel=0.07))
