"""Verify trusts nothing, yet passes correct solves for every rule, solver and kind of worker."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from dense import optimum, primal_value
from solved import options_of, path_of, solved
from spreads import backwards
from tiny import TINY
from verified import copy_of, problem_of, run_of

from gapwise.records import Facts
from gapwise.stages.certify import cells, recompute
from gapwise.stages.certify.recompute import rebuild_zero
from gapwise.stages.certify.rounding import slack_of
from gapwise.stages.certify.verdict import verdict_of
from gapwise.stages.model import solved_path as outcome
from gapwise.stages.problems import build
from gapwise.stages.problems.parallel import Spread
from gapwise.stages.solver.engine import Engine, Task
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.verify import CertificateError, in_memory, stored, verify
from gapwise.storage.results import read_path
from gapwise.storage.sink import MemorySink


# -- what is true passes --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "kind"),
    [*zip(sorted(TINY), itertools.cycle(["two_sided", "paper", "grid", "single"]), strict=False)],
)
def test_verify__passes_what_is_solved(name: str, kind: str) -> None:
    result = verify(TINY[name](), run_of(name, kind))
    assert result["certified"]
    assert result["broken"] == []
    assert 0.0 < result["max_gap"] <= result["epsilon"] * (1 + 1e-7)
    assert result["max_rebuild_error"] < 1e-10
    assert result["max_simplex_error"] < 1e-10
    if len(result["samples"]):  # closed to a millionth less than eps, which is left to rounding
        assert result["max_gap"] <= result["epsilon"] * (1 - 0.9e-6)
    assert len(result["samples"]) == (20 if kind in ("two_sided", "paper") else 0)
    assert json.loads((run_of(name, kind) / "verify.json").read_text()) == result


def test_verify__passes_a_relative_path_that_reaches_its_end() -> None:
    run = run_of("multiclass", "two_sided_whole")
    result = verify(problem_of("multiclass", "two_sided_whole"), run, samples=60)
    assert result["certified"]
    assert result["lambda_low"] == 0.0
    assert 0.02 < result["max_gap"] <= 0.05 * (1 + 1e-7)
    assert min(sample["lambda"] for sample in result["samples"]) < read_path(run / "path.zarr")[0]["lambda"][-1]


@pytest.mark.parametrize("choices", [{"eps": 0.9, "relative": True}, {"eps": 1.1, "relative": True}])
def test_verify__says_that_eps_above_all_losses_certifies_nothing(choices: dict[str, float], tmp_path: Path) -> None:
    problem = TINY["multiclass"]()
    solved(problem, tmp_path, options_of(), path_of(rule="two_sided", kappa=0.7, lambda_min=0.0, **choices))
    (tmp_path / "verify.json").unlink(missing_ok=True)
    words = SimpleNamespace(**verify(problem, tmp_path)["verdict"]).words
    assert ("looser than the trivial bound" in words) == (choices["eps"] > 1.0), words


def test_verify__passes_averages_and_relative_tolerances() -> None:
    for run in (
        run_of("multiclass", "single", method="mpbcfw", averaging="weighted"),
        run_of("multiclass", "relative"),
    ):
        assert verify(TINY["multiclass"](), run)["certified"]


def test_verify__lets_weights_round_however_small_the_tolerance() -> None:
    """At 1e-12 a thousandth of eps would be less than a rounding of the weights themselves."""
    assert verify(TINY["chain"](), run_of("chain", "tight"))["broken"] == []
    rebuilt = SimpleNamespace(psi_scale=1.0, norm2=1.0, dual_norm2=1.0, largest=1.0)
    slack = slack_of(rebuilt, rebuild_zero(TINY["chain"]()), 0.1, 1e-30)
    assert slack.value < 1e-30
    for allowed in (slack.simplex, slack.weights):
        assert 1e-15 < allowed < 1e-13


def test_verify__samples_bound_what_enumeration_finds() -> None:
    """A sampled gap is P at some w less a dual value: at least what w's P exceeds the optimum by."""
    problem, run = TINY["multiclass_cone"](), run_of("multiclass_cone", "paper")
    arrays, _ = read_path(run / "path.zarr")
    for sample in verify(problem, run, samples=6, seed=4)["samples"]:
        b = int(np.searchsorted(-arrays["lambda"], -sample["lambda"], side="right")) - 1
        if b >= 0:
            excess = primal_value(problem, arrays["weights"][b], sample["lambda"]) - optimum(problem, sample["lambda"])
            assert -1e-7 <= excess <= sample["gap"] + 1e-7


def test_verify__zero_is_that_of_enumeration() -> None:
    from dense import psi_and_loss

    problem = TINY["multiclass_cone"]()
    psis, losses = psi_and_loss(problem)
    psi = np.mean([p[np.argmax(loss)] for p, loss in zip(psis, losses, strict=True)], axis=0)
    zero = rebuild_zero(problem)
    assert zero.hinge == pytest.approx(np.mean([loss.max() for loss in losses]), abs=1e-12)
    assert zero.psi_norm2 == pytest.approx(float(np.sum(np.clip(psi, problem.lower, problem.upper) ** 2)), rel=1e-9)


def test_verify__heuristic_path_is_labelled_so_and_raises_nothing(tmp_path: Path) -> None:
    run = copy_of(run_of("multiclass", "heuristic"), tmp_path)
    assert verify(TINY["multiclass"](), run)["certified"] is False
    arrays = zarr.open_group(run / "path.zarr", mode="a")
    arrays["lambda_low"][0] = 1e-6
    result = verify(TINY["multiclass"](), run)
    assert result["certified"] is False
    assert result["broken"]


def test_verify__limit_is_no_broken_promise_and_no_certificate() -> None:
    """The lambda that a limit left unfinished is claimed by nobody; those before it still are."""
    run = run_of("multiclass", "limited")
    arrays, attrs = read_path(run / "path.zarr")
    assert arrays["gap"][-1] > attrs["eps"]
    result = verify(TINY["multiclass"](), run)
    assert result["certified"] is False
    assert result["broken"] == []
    claimed = arrays["lambda_low"][-2] if arrays["lambda"].size > 1 else None
    assert result["lambda_low"] == claimed
    assert all(sample["gap"] <= attrs["eps"] for sample in result["samples"])


def test_verify__does_not_depend_on_the_workers() -> None:
    run, problem = run_of("multiclass", "paper"), TINY["multiclass"]()

    assert verify(problem, run, spread=Spread(backwards)) == verify(problem, run)


# -- what is no number, and what rounding hides ---------------------------------------------------------------------------
NUMBERS = ("lambda", "lambda_low", "gap", "primal", "dual", "hinge", "loss_dual", "norm2")
OF_CELLS = ("cell_low", "cell_high", "cell_primal", "cell_dual", "cell_inner", "cell_dual_inner", "cell_scale")


@pytest.mark.parametrize("kind", ["two_sided_whole", "paper", "grid"])
def test_verify__takes_no_nan_anywhere(kind: str) -> None:
    (arrays, attrs), problem = read_path(run_of("multiclass", kind) / "path.zarr"), problem_of("multiclass", kind)
    of_cells = OF_CELLS if kind.startswith("two_sided") else OF_CELLS[:3] if kind == "paper" else ()
    for name in (*NUMBERS, *of_cells):
        for row in {0, len(arrays[name]) - 1}:
            spoilt = arrays[name].copy()
            spoilt[row] = np.nan
            with pytest.raises(CertificateError):
                verify(problem, in_memory({**arrays, name: spoilt}, attrs))


@pytest.mark.parametrize("kind", ["two_sided_whole", "paper"])
def test_verify__takes_no_nan_from_an_exact_pass(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "primal_at", lambda *arguments, **choices: np.nan)
    kept: list[Facts] = []
    with pytest.raises(CertificateError):
        verify(problem_of("multiclass", kind), replace(stored(run_of("multiclass", kind)), keep=kept.append))
    assert sum("an exact pass finds a gap of nan" in line for line in kept[0]["broken"]) == 20


@pytest.mark.parametrize(("gap", "primal", "expected"), [(0.1, np.nan, np.nan), (0.1, 0.5, 0.2), (0.1, 0.0, 0.1)])
def test_share__of_no_number_is_none(gap: float, primal: float, expected: float) -> None:
    np.testing.assert_equal(recompute.share(gap, primal), expected)
    np.testing.assert_equal(recompute.worst([expected, gap]), max(expected, gap) if expected == expected else np.nan)
    np.testing.assert_equal(recompute.worst([gap, expected]), max(expected, gap) if expected == expected else np.nan)


@pytest.mark.parametrize(("scale", "own"), [(1e-8, False), (1e5, True)])
def test_verify__says_where_rounding_hides_a_gap_and_refuses_what_it_does_not_explain(scale: float, own: bool) -> None:
    """The classes are far apart, so that the dual value, of which the tolerance is a share, is next to nothing."""
    rng, y = np.random.default_rng(0), np.repeat([0, 1, 2], 4)
    X = scale * (rng.normal(size=(12, 4)) + 9.0 * np.eye(3, 4)[y])
    problem = build("multiclass", {"x": X, "labels": y}, {"classes": 3})
    lam = scale**2 * 1e-9
    along = PathOptions(rule="single", lam=lam, tolerance=1e-3, relative=True)
    engine, sink = Engine.begin(Task(problem, method_options("accelerated" if own else "bcfw"), along)), MemorySink()
    engine.run(sink=sink)
    arrays, attrs = outcome.in_memory(engine, sink, "k")
    dual = float(arrays["dual"][0])
    assert dual < 1e-8

    def with_more(**changes: float) -> dict[str, object]:
        changed = {name: arrays[name] + by for name, by in changes.items()}
        return verify(problem, in_memory({**arrays, **changed}, attrs))["verdict"]

    hidden = with_more(gap=0.5e-3 * dual)
    assert (hidden["certified"], hidden["status"], hidden["rounded"]) == (False, "ROUNDING_LIMIT", [lam])
    verdict = verdict_of(hidden)
    assert not verdict.at_lambda(lam, float(arrays["gap"][0]), 1e-3 * dual).certified
    assert "ROUNDING_LIMIT came before the tolerance" in verdict.words
    for name in ("gap", "primal", "dual", "hinge", "loss_dual"):
        with pytest.raises(CertificateError, match=f"{name} is stored as"):
            with_more(**{name: 1e-4 if own else 0.1})
    with pytest.raises(CertificateError, match="norm2 is stored as"):
        with_more(norm2=(1e-4 if own else 0.1) * float(arrays["norm2"][0]))
