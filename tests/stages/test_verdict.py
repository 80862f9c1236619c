"""One verdict for every combination of gap, path and end; and every reader says the same."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged import ATTRS, GIVEN, judged
from tiny import TINY
from verified import KINDS, copy_of, problem_of, run_of

from gapwise.pipeline.advice import what_next
from gapwise.pipeline.cli.ls import progress
from gapwise.pipeline.estimators.certificate import certificate_of
from gapwise.pipeline.estimators.solving import Solved
from gapwise.pipeline.overview.run_state import RunState
from gapwise.pipeline.result import summary
from gapwise.pipeline.tracking.curves import headline
from gapwise.stages.certify.verdict import (
    CLAIMED,
    Doubt,
    Reach,
    Verdict,
    claimed,
    no_tighter,
    verdict_in,
    verdict_of,
)
from gapwise.stages.reports.page.story import in_words
from gapwise.stages.solver.options import PathOptions, Status
from gapwise.stages.verify import verify
from gapwise.storage.files import DamagedError
from gapwise.storage.mixture import PathInMemory
from gapwise.storage.results import read_path

SENSES = ("exact", "upper-bounded", "estimate")
PATHS: dict[str, dict[str, Any]] = {
    "path": {},
    "grid": {**GIVEN},
    "single": {"rule": "single"},
    "heuristic": {"rule": "heuristic"},
    "no dual point": {"rule": "single", "dual_point": False},
}
ENDS: dict[str, dict[str, Any]] = {
    "converged": {},
    "cut": {"status": "PASS_LIMIT", "found": {"met": 2, "lam_low": 0.5}},
    "cut before the first": {"status": "PASS_LIMIT", "found": {"met": 0, "lam_low": math.nan}},
    "negligible": {"status": "LAMBDA_NEGLIGIBLE", "found": {"lam_low": 0.01}},
    "broken": {"found": {"broken": ["lambda 1 (breakpoint 0): the gap is wrong"]}},
}


def verdict_on(sense: str, path: str, end: str) -> Verdict:
    attrs = {**PATHS[path], **ENDS[end]}
    heuristic, dual = path == "heuristic", attrs.get("dual_point", True)
    word = "estimate" if heuristic else sense
    findings = dict(attrs.pop("found", {}))
    if path in ("grid", "single", "no dual point") and "lam_low" not in findings:
        findings |= {"lam_low": 0.2, "lam_high": 1.0}
    if not dual:
        findings["largest_gap"] = math.nan
    certified = dual and word != "estimate"
    return judged(**{**attrs, "certainty": word, "certified": certified, "findings": findings})


def expected(sense: str, path: str, end: str) -> tuple[Reach, Doubt | None]:
    """Reach and doubt, from the definitions alone."""
    if path == "no dual point":
        return Reach.NOTHING, Doubt.BROKEN if end == "broken" else Doubt.NO_DUAL_POINT
    if path == "heuristic":
        return Reach.NOTHING, Doubt.HEURISTIC
    if sense == "estimate":
        return Reach.NOTHING, Doubt.ESTIMATE
    if end == "broken":
        return Reach.NOTHING, Doubt.BROKEN
    whole = {"converged": Reach.EVERY, "cut": Reach.RANGE, "cut before the first": Reach.NOTHING}
    reach = whole.get(end, Reach.RANGE) if path == "path" else Reach.SOLVED
    if end == "cut before the first":
        reach = Reach.NOTHING
    return reach, Doubt.UNFINISHED if end.startswith("cut") else None


CASES = list(itertools.product(SENSES, PATHS, ENDS))


@pytest.mark.parametrize(("sense", "path", "end"), CASES)
def test_judge__of_every_combination(sense: str, path: str, end: str) -> None:
    verdict = verdict_on(sense, path, end)
    assert (verdict.reach, verdict.doubt) == expected(sense, path, end)
    assert verdict.certified is (verdict.doubt is None)
    assert verdict.refuted is (verdict.doubt is Doubt.BROKEN)
    assert verdict.bounded is (path not in ("heuristic", "no dual point") and sense != "estimate" and end != "broken")
    assert verdict_of(json.loads(json.dumps(verdict.record(), allow_nan=False))) == verdict
    assert verdict.verified is (end != "broken")


def result_with(verdict: Verdict) -> dict[str, Any]:
    """result.json of a run with this verdict."""
    record = {"lambda": 1.0, "gap": 0.05, "primal": 0.5, "dual": 0.45, "effective_passes": 1.0, "oracle_calls": 5}
    return {
        "status": verdict.status, "problem": {"name": "x", "n": 5, "d": 3},
        "path": [{**record, "seconds": 0.1, "status": verdict.status}], "verdict": verdict.record(), "verify": {},
        "evaluate": {"best_lambda": 1.0, "train_loss": 0.1, "test_loss": 0.2},
    }  # fmt: skip


@pytest.mark.parametrize(("sense", "path", "end"), CASES)
def test_verdict__is_what_every_reader_says(sense: str, path: str, end: str) -> None:
    verdict = verdict_on(sense, path, end)
    result = result_with(verdict)
    said = summary(result, Path("run"))
    assert f"  verify  {verdict.words}" in said
    assert ("every certificate holds" in said) is verdict.certified
    page = str(in_words(verdict))
    assert ("rebuilt every solution" in page) is verdict.certified
    assert ("does not hold" in page) is verdict.refuted
    assert ("nothing is certified" in page) is (verdict.doubt in (Doubt.NO_DUAL_POINT, Doubt.HEURISTIC, Doubt.ESTIMATE))
    assert ("for every λ &gt; 0" in page or "for every λ > 0" in page) is (
        verdict.certified and verdict.reach is Reach.EVERY
    )
    facts = RunState(Path("run"), "complete", result=result).facts()  # type: ignore[arg-type]
    assert (facts["certified"], facts["certainty"], facts["verdict"]) == (
        verdict.certified,
        verdict.sense,
        verdict.words,
    )
    assert ("not certified" in progress(facts)) is not verdict.certified
    metrics = {point.name for point in headline(result, 0)}
    assert ("certified_gap" in metrics) is verdict.bounded
    advice = what_next(result)
    assert ("certifies half the gap" in advice) is (verdict.certified and end == "converged")
    assert ("path=regpath certifies" in advice) is (path == "heuristic" and not end.startswith("cut"))


def test_verdict_in__names_a_file_without_one() -> None:
    for record in ({}, {"verdict": None}, {"verdict": {"reach": "all"}}, None):
        with pytest.raises(DamagedError, match=r"verify\.json: the verdict is missing or damaged"):
            verdict_in(record, Path("verify.json"))
    wrong = {**judged().record(), "reach": "half of them"}
    with pytest.raises(ValueError, match="no verdict"):
        verdict_of(wrong)


def test_at__of_one_lambda() -> None:
    whole = judged(findings={"lam_low": 0.5})
    assert whole.at_lambda(0.7, None, math.inf).certified
    assert not whole.at_lambda(0.4, None, math.inf).certified, "below the path's end"
    cut = judged(status="PASS_LIMIT", findings={"met": 2, "lam_low": 0.5})
    assert cut.at_lambda(0.5, 0.09, 0.1).certified
    assert not cut.at_lambda(0.3, 0.2, 0.1).certified
    estimate = judged(certainty="estimate", certified=False).at_lambda(0.5, 0.01, 0.1)
    assert (estimate.certified, estimate.doubt, estimate.largest_gap) == (False, Doubt.ESTIMATE, 0.01)


@pytest.mark.parametrize("kind", ["two_sided", "paper", "grid", "limited", "heuristic"])
def test_claimed__is_what_verify_finds(kind: str, tmp_path: Path) -> None:
    """Before verify, a path claims what verify then confirms, unverified and with the gaps of solved lambdas alone."""
    run = copy_of(run_of("multiclass", kind), tmp_path)
    own = claimed(*read_path(run / "path.zarr"))
    assert claimed(*read_path(run / "path.zarr", CLAIMED.__contains__)) == own, "no other array is looked at"
    recomputed = verdict_of(verify(problem_of("multiclass", kind), run)["verdict"])
    assert not own.verified
    assert recomputed.verified or kind == "heuristic", "whose stale gaps need not be those recomputed"
    same = ("reach", "doubt", "sense", "status", "met", "solved", "lam_low", "lam_high", "allowed", "relative")
    assert {name: getattr(own, name) for name in same} == {name: getattr(recomputed, name) for name in same}
    if kind != "heuristic":
        assert own.largest_gap <= recomputed.largest_gap + 1e-9


@pytest.mark.parametrize(
    ("kind", "checked"),
    [("two_sided", True), ("limited", False), ("single", True), ("grid", False), ("heuristic", True)],
)
def test_certificate__of_an_estimator_is_the_verdict(kind: str, checked: bool, tmp_path: Path) -> None:
    run = copy_of(run_of("multiclass", kind), tmp_path)
    path = PathOptions(**{"eps": 0.1, "kappa": 0.9, **KINDS[kind]})
    result = verify(TINY["multiclass"](), run) if checked else None
    stored = PathInMemory(*read_path(run / "path.zarr"))
    certificate = certificate_of(Solved(stored, Status(stored.attrs["status"]), result, None), path, 0)
    assert certificate.holds is certificate.verdict.certified
    assert certificate.holds is (kind not in ("limited", "heuristic"))
    assert certificate.verified is (checked and kind != "heuristic")
    assert np.isfinite(certificate.gap)
    if kind in ("grid", "single"):
        assert certificate.lam_low == certificate.lam_high == float(stored["lambda"][0])
    else:
        assert certificate.lam_high == math.inf


def test_certificate__no_tighter_than_the_trivial_bound_is_called_so() -> None:
    loose = judged(rule="single", findings={"met": 1, "solved": 1, "largest_gap": 0.071, "loose": 1})
    assert loose.words == (
        "every certificate holds; looser than the trivial bound: the gap is no smaller than the objective"
    )
    assert "looser than the trivial bound" in in_words(loose)
    some = judged(findings={"loose": 2})
    assert "looser than the trivial bound at 2 of 3 λ's: the gap" in some.words
    assert "trivial" not in judged().words
    assert "trivial" not in in_words(judged())
    assert [bool(no_tighter(*pair)) for pair in ((0.071, 0.037), (0.1, 0.1), (0.1, 0.2), (0.0, 0.0), (math.nan, 1.0))] == [
        True, True, False, False, False,
    ]  # fmt: skip
    at = judged(**GIVEN).at_lambda(0.5, 0.071, 0.1, 0.037)
    assert (at.certified, at.loose) == (True, 1)
    assert judged(**GIVEN).at_lambda(0.5, 0.071, 0.1).loose == 0
    arrays = {"gap": [0.071], "lambda": [0.5], "status": [0], "dual": [-0.034], "primal": [0.037]}
    attrs = {**ATTRS, **GIVEN, "status_meanings": ["CONVERGED"]}
    assert claimed({name: np.array(values) for name, values in arrays.items()}, attrs).loose == 1
