"""The last lines of a run say from which lambda on a path is certified, and what goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.result import summary


def found(status: str, low: float, certified: bool = True) -> dict:
    record = {"lambda": 1.0, "effective_passes": 1.0, "oracle_calls": 5, "seconds": 0.1}
    return {
        "status": status,
        "rule": "one_sided",
        "problem": {"name": "ocr", "n": 5, "d": 3},
        "path": [record],
        "verify": {
            "certified": certified, "dual_point": True, "epsilon": 0.1, "max_gap": 0.09, "max_rebuild_error": 1e-15,
            "lambda_low": low,
        },
        "evaluate": {"best_lambda": 1.0, "train_loss": 0.1, "test_loss": 0.2},
    }  # fmt: skip


SAYS = {
    "CONVERGED": (0.0, "for every λ > 0:"),
    "LAMBDA_NEGLIGIBLE": (2e-5, "for λ ≥ 2e-05; below, λ‖w‖²/2 is under 1 % of ε (path.lambda_min=… goes on)"),
    "ROUNDING_LIMIT": (2e-5, "for λ ≥ 2e-05; below, rounding would show"),
}


@pytest.mark.parametrize("status", SAYS)
def test_summary__says_how_far_down_a_path_is_certified(status: str) -> None:
    low, words = SAYS[status]
    assert words in summary(found(status, low), Path("run"))


@pytest.mark.parametrize("status", SAYS)
def test_summary__calls_a_path_that_ended_without_certificate_heuristic(status: str) -> None:
    assert "a heuristic path" in summary(found(status, 0.0, certified=False), Path("run"))
