"""`gapwise diff` of runs whose lambda was picked on different splits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_runs import fake_run

from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.rundir import read_json, write_json

WORDS = "two protocols: λ was picked on test blocks in the first run and on validation blocks in the second"


def make_validated(root: Path, name: str, refit: float = 0.3) -> Path:
    run = fake_run(root, name)
    result = {key: value for key, value in read_json(run / "result.json").items() if key != "seal"}
    result["evaluate"] |= {"picked_on": "validation", "test_loss": 0.22}
    result["refit"] = {"test_loss": refit, "verdict": {"met": 1}}
    write_json(run / "result.json", result, seal=True)
    return run


def test_diff__says_that_lambda_was_picked_on_different_splits(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    on_test, also = (str(fake_run(tmp_path, f"toy-bcfw-0000000{k}")) for k in (1, 2))
    validated = str(make_validated(tmp_path, "toy-bcfw-00000003"))

    def said(*words: str) -> str:
        assert carry_out(["diff", *words]) == 0
        return capsys.readouterr().out

    assert WORDS in said(on_test, validated)
    assert json.loads(said(on_test, validated, "--json"))["results"]["evaluate.picked_on"] == ["test", "validation"]
    assert "two protocols" not in said(on_test, also)
    assert "two protocols" not in said(validated, validated)


def test_diff__compares_the_refitted_models(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    runs = [str(make_validated(tmp_path, f"toy-bcfw-0000000{k}", refit=k / 10)) for k in (1, 2)]
    assert carry_out(["diff", *runs, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results["refit.test_loss"] == [0.1, 0.2]
    assert "refit.verdict" not in results
