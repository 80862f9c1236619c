"""Everything that shows a gap says whether it is exact, upper-bounded or an estimate; verify computes bounds of its own."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from solved import options_of, path_of, solved
from tiny import potts
from tiny.python_oracle_instances import python_oracle
from verified import copy_of

from gapwise.pipeline.result import breakpoints, summary
from gapwise.stages.certify.oracle import OracleError, exact_pass
from gapwise.stages.certify.verdict import verdict_of
from gapwise.stages.problems.capabilities import accuracy_of, certainty_of
from gapwise.stages.reports.page.story import in_words
from gapwise.stages.solver.options import Status
from gapwise.stages.solver.oracles import answers_at
from gapwise.stages.verify import CertificateError, asked_for, verify
from gapwise.storage.results import read_path

pytestmark = pytest.mark.interpreted

FOLDER = tempfile.TemporaryDirectory(prefix="gapwise-certainty-")
KINDS = {
    "paper": {"rule": "paper", "lambda_min": 0.05},
    "two_sided": {"rule": "two_sided", "kappa": 0.7, "lambda_min": 0.05},
    "single": {"rule": "single", "lam": 0.03, "tolerance": 0.1},
    "relative": {"rule": "two_sided", "kappa": 0.7, "eps": 0.2, "relative": True},
}


@functools.cache
def problem_of(oracle="trws", sweeps=1):
    """With one sweep, some bounds exceed every labelling."""
    return potts(n=5, most=4, seed=20, meta={"sweeps": sweeps, "slack": 0.0, "oracle": oracle})


@functools.cache
def run(kind="paper", oracle="trws", sweeps=1):
    """The directory of a solved path."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER.name)) / "run"
    status = solved(problem_of(oracle, sweeps), folder, options_of(), path_of(**{"kappa": 0.9, **KINDS[kind]}))
    assert status in (Status.CONVERGED, Status.LAMBDA_NEGLIGIBLE)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_verify__certifies_by_its_own_bounds(kind):
    result = verify(problem_of(), run(kind))
    assert result["certified"]
    assert result["broken"] == []
    assert result["certainty"] == "upper-bounded"
    arrays, attrs = read_path(run(kind) / "path.zarr")
    assert attrs["certainty"] == "upper-bounded"
    assert result["proven"] == pytest.approx(arrays["proven"].mean(), abs=0.02)  # where labels tie, rounding decides
    assert result["bound_slack"] == pytest.approx(arrays["bound_slack"].mean(), rel=0.05, abs=1e-9)
    if kind != "relative":  # there the oracle finds and proves more
        assert result["bound_slack"] > 1e-4
        assert result["proven"] < 1.0
        assert result["bound_slack_share"] == pytest.approx(result["bound_slack"] / result["epsilon"])


def test_verify__refuses_the_gaps_of_the_answers(tmp_path):
    """What a solver without bounds would store: smaller hinges and gaps, which no bound confirms."""
    folder = copy_of(run(), tmp_path)
    group = zarr.open_group(folder / "path.zarr", mode="a")
    for name in ("gap", "hinge", "primal"):
        group[name][:] = group[name][:] - group["bound_slack"][:]
    with pytest.raises(CertificateError, match="gap is stored as"):
        verify(problem_of(), folder)


@pytest.mark.parametrize("word", ["exact", "estimate"])
def test_verify__refuses_another_word_for_the_gaps(word, tmp_path):
    folder = copy_of(run(), tmp_path)
    zarr.open_group(folder / "path.zarr", mode="a").attrs["certainty"] = word
    with pytest.raises(
        CertificateError, match=f"attribute certainty: '{word}' is stored, 'upper-bounded' was asked for"
    ):
        verify(problem_of(), folder)


def test_verify__calls_gaps_of_a_plain_approximate_oracle_estimates():
    problem, folder = problem_of("expansion"), run("paper", "expansion")
    asked = asked_for(path_of(**KINDS["paper"]), "bcfw", seed=3, key="k", certainty=certainty_of(problem))
    result = verify(problem, folder, asked=asked)
    assert (result["certified"], result["certainty"]) == (False, "estimate")
    assert "proven" not in result
    attrs = read_path(folder / "path.zarr")[1]
    assert (attrs["certified"], attrs["certainty"]) == (False, "estimate")


def test_verify__lets_no_estimate_call_itself_certified(tmp_path):
    folder = copy_of(run("paper", "expansion"), tmp_path)
    zarr.open_group(folder / "path.zarr", mode="a").attrs["certified"] = True
    with pytest.raises(CertificateError, match="attribute certified: True is stored, False was asked for"):
        verify(problem_of("expansion"), folder)


def result_of(folder, problem):
    records, attrs = breakpoints(folder)
    return {
        "status": attrs["status"],
        "rule": attrs["rule"],
        "certainty": attrs["certainty"],
        "problem": {"name": "tiny", "n": problem.n, "d": problem.d},
        "path": records,
        "verdict": verify(problem, folder)["verdict"],
        "evaluate": {"best_lambda": 1.0, "train_loss": 0.1, "test_loss": 0.2},
    }


# -- a user's oracle ------------------------------------------------------------------------------------------------------
def test_python_oracle__is_bounded_if_it_says_how():
    assert [certainty_of(python_oracle(name)) for name in ("Pairs", "Greedy", "GreedyBounded")] == [
        "exact", "estimate", "upper-bounded",
    ]  # fmt: skip
    problem, exact = python_oracle("GreedyBounded"), python_oracle("Pairs")
    w = np.append(0.3 * np.random.default_rng(0).normal(size=problem.d - 1), -1.0)
    vertices, most = answers_at(problem, w, range(problem.n)), answers_at(exact, w, range(exact.n))
    assert (vertices.h < most.h).any()
    np.testing.assert_allclose(vertices.bound, most.h + np.where(vertices.h < most.h, 0.125, 0.0), atol=1e-12)
    np.testing.assert_array_equal(vertices.proven, vertices.h == most.h)


def test_accuracy__is_said_with_what_lj13_promises(tmp_path, monkeypatch):
    import python_task

    monkeypatch.setattr(python_task.Greedy, "accuracy", 0.8)
    problem = python_oracle("Greedy")
    solved(problem, tmp_path / "run", options_of(), path_of(**KINDS["single"]))
    result = result_of(tmp_path / "run", problem)
    assert (result["verdict"]["accuracy"], result["verdict"]["certified"]) == (0.8, False)
    said = "a gap is at most 1.25 times its estimate and BCFW takes at most 1.562 times the steps (LJ13 section 4)"
    assert said in summary(result, Path("run"))
    assert said in str(in_words(verdict_of(result["verdict"])))
    assert accuracy_of(python_oracle("GreedyBounded")) is None  # a bound says more
    for name, value in (("Greedy", 1.5), ("Pairs", 0.8)):
        monkeypatch.setattr(getattr(python_task, name), "accuracy", value, raising=False)
        with pytest.raises(
            ValueError, match=rf"python_task:{name}: accuracy is {value}; expected a number in \(0, 1\]"
        ):
            python_oracle(name)


@pytest.mark.parametrize(("less", "rival"), [(1.0, "the max-oracle's own answer"), (np.nan, "")])
def test_verify__refuses_a_bound_that_is_none(less, rival, monkeypatch):
    import python_task

    monkeypatch.setattr(python_task.GreedyBounded, "less", less, raising=True)
    problem = python_oracle_unchecked(monkeypatch)
    with pytest.raises((OracleError, ValueError), match=r"so it is no bound|a bound must be one finite") as caught:
        exact_pass(problem, np.zeros(problem.d), decode=True)
    assert rival in str(caught.value)


def python_oracle_unchecked(monkeypatch):
    """The problem of an oracle that the reader's trial would have refused."""
    monkeypatch.setattr("gapwise.stages.problems.oracle_check.try_oracle", lambda *arguments: None)
    return python_oracle("GreedyBounded")
