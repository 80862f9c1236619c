"""The last lines of a run say from which lambda on a path is certified, and what goes on from there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from judged import GIVEN, judged

from gapwise.pipeline.result import summary

HEURISTIC = {"rule": "heuristic", "certainty": "estimate"}


def result_of(
    status: str, low: float, certified: bool = True, findings: dict | None = None, attrs: dict | None = None
) -> dict:
    record = {"lambda": 1.0, "gap": 0.05, "primal": 0.5, "effective_passes": 1.0, "oracle_calls": 5, "seconds": 0.1}
    met = 3 if certified else 2
    verdict = judged(status=status, findings={"lam_low": low, "met": met, **(findings or {})}, **(attrs or {}))
    return {
        "status": status,
        "problem": {"name": "ocr", "n": 5, "d": 3},
        "path": [record],
        "verdict": verdict.record(),
        "evaluate": {"best_lambda": 1.0, "train_loss": 0.1, "test_loss": 0.2},
    }  # fmt: skip


def test_summary__says_what_a_method_without_a_dual_point_has_found() -> None:
    no_dual = {"dual_point": False, "certified": False}
    cut = result_of("PASS_LIMIT", 0.0, findings={"largest_gap": math.nan}, attrs=no_dual)
    cut["path"][0] |= {"primal": 0.24321, "gap": "nan"}
    words = "the method has no dual point, so nothing is certified; a limit ends it and no tolerance"
    assert f"  verify  {words} · primal objective 0.243\n" in summary(cut, Path("run"))
    bounds = {"largest_gap": math.nan, "proven": 0.9, "bound_slack_share": 0.05}
    bounded = {**no_dual, "certainty": "upper-bounded"}
    cut["verdict"] = result_of("PASS_LIMIT", 0.0, findings=bounds, attrs=bounded)["verdict"]
    assert "oracle proven optimal on 90.0% of the examples\n" in summary(cut, Path("run")), (
        "no tolerance to take a share of"
    )
    cut["path"] *= 2
    assert "primal objective" not in summary(cut, Path("run")), "several lambdas have several"


def test_summary__has_the_words_that_its_readers_were_promised() -> None:
    done = result_of("CONVERGED", 0.0, findings={"rebuild_error": 5.24e-14})
    done["evaluate"] |= {"all_zero_test_loss": 0.5}
    text = summary(done, Path("run"))
    assert "; stored and recomputed weights agree to 5.24e-14" in text
    assert "baseline (the first label everywhere): test loss 0.5" in text
    commonest = {"commonest_label": "O", "commonest_test_loss": 0.3}
    text = summary({**done, "evaluate": {**done["evaluate"], **commonest}}, Path("run"))
    assert "baseline (O everywhere): test loss 0.3" in text
    assert "optimistic: λ chosen on the test split; dataset.validation=0.2 gives an honest one" in text
    refit = {"lambda": 0.1, "gap": 0.01, "primal": 0.5, "pick": "parabola", "verdict": done["verdict"]}
    done["refit"] = {**refit, "test_loss": 0.2, "test_chunk_f1": 0.9}
    text = summary(done, Path("run"))
    assert "on all training examples · test loss 0.2 · gap 0.01 of an objective of 0.5: " in text
    assert "\n          test chunk f1 0.9\n" in text
    done["evaluate"] |= {"test_foreground_iou": 0.4}
    assert "baseline (all background): test loss 0.5" in summary(done, Path("run"))


SAYS = {
    "CONVERGED": (0.0, "for every λ > 0:"),
    "LAMBDA_NEGLIGIBLE": (2e-5, "for λ ≥ 2e-05; below, λ‖w‖²/2 is under 1 % of ε (path.lambda_min=… goes on)"),
    "ROUNDING_LIMIT": (2e-5, "for λ ≥ 2e-05; below, rounding would show"),
}


@pytest.mark.parametrize("status", SAYS)
def test_summary__says_how_far_down_a_path_is_certified(status: str) -> None:
    low, words = SAYS[status]
    assert words in summary(result_of(status, low), Path("run"))


@pytest.mark.parametrize("status", SAYS)
def test_summary__says_that_a_heuristic_path_certifies_nothing(status: str) -> None:
    path = result_of(status, 0.0, attrs=HEURISTIC)
    assert "a heuristic path, nothing is certified: largest gap" in summary(path, Path("run"))


NEXT = {
    "TIME_LIMIT": "solver.max_seconds above 60 goes on from here, in this directory",
    "PASS_LIMIT": "the limit was solver.max_passes: a larger one solves from the beginning (a new run; it ",
    "ORACLE_LIMIT": "the limit was solver.max_oracle_calls: ",
    "STALLED": "no limit was reached, but 1,000 exact passes gained nothing: ask for a larger gap (a new run; it ",
}


@pytest.mark.parametrize("status", NEXT)
def test_summary__says_how_to_go_on_after_a_limit(status: str) -> None:
    text = summary(result_of(status, 0.0, certified=False), Path("run"), solve={"max_seconds": 60.0})
    assert f"    next  {NEXT[status]}" in text.replace("time ran out: the same command with ", "")


def test_summary__tells_a_limit_of_breakpoints_from_one_of_passes() -> None:
    cut = result_of("PASS_LIMIT", 0.0)
    cut["path"][0]["status"] = "CONVERGED"
    assert "the limit was path.max_breakpoints" in summary(cut, Path("run"))


def test_summary__says_which_eps_every_lambda_is_within_and_how_to_go_on() -> None:
    text = summary({**result_of("CONVERGED", 0.0), "every_lambda_within": 0.0838}, Path("run"))
    assert " · CONVERGED · every λ within 0.0838\n" in text
    assert "    next  path.eps=0.042 or less goes on from here, in this directory" in text


@pytest.mark.parametrize(("gap", "primal"), [(9.22e-15, 0.5), (0.0, 0.0)])
def test_summary__advises_no_tolerance_below_rounding(gap: float, primal: float) -> None:
    exact = result_of("CONVERGED", 1.0, attrs=GIVEN, findings={"largest_gap": gap})
    exact["path"][0] |= {"gap": gap, "primal": primal}
    assert "    next  the gap is as small as rounding allows · gapwise ls compares runs\n" in summary(
        exact, Path("run")
    )


def test_summary__says_what_would_certify_more() -> None:
    good = result_of("CONVERGED", 0.0)
    assert "    next  path.eps=0.05 certifies half the gap (a new run; it reuses these features)" in summary(
        good, Path("run")
    )
    beyond = "this λ lies at the end of the path: a smaller eps goes on to smaller λ's, of which one may be better"
    last = result_of("CONVERGED", 0.0)
    assert beyond not in summary(last, Path("run"))
    last["evaluate"]["best_edge"] = "end"
    assert beyond in summary(last, Path("run"))
    less = result_of("CONVERGED", 0.0, findings={"largest_gap": 0.03})
    assert "    next  path.eps=0.015 certifies half the gap" in summary(less, Path("run"))
    given = result_of("CONVERGED", 1.0, attrs=GIVEN)
    assert "    next  path.tolerance=0.05 certifies half the gap" in summary(given, Path("run"))
    share = result_of("CONVERGED", 1.0, attrs={**GIVEN, "relative": True}, findings={"largest_gap": 0.01})
    share["path"][0] |= {"gap": 0.01, "primal": 0.51}
    assert "    next  path.tolerance=0.01 certifies half the gap" in summary(share, Path("run")), "a gap of 0.02 D"
    heuristic = result_of("CONVERGED", 0.0, attrs=HEURISTIC)
    assert "    next  path=regpath certifies every λ" in summary(heuristic, Path("run"))
    estimate = result_of("CONVERGED", 0.0, attrs={"certainty": "estimate"})
    assert "    next" not in summary(estimate, Path("run"))
