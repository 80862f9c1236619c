"""gapwise check: says what is wrong with a structure of one's own, what it costs, and what to run it with."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import python_task
from tiny import multiclass

from gapwise.pipeline import structure_check as checks
from gapwise.pipeline.cli import carry_out
from gapwise.pipeline.structure_check import check_problem
from gapwise.stages.problems import compiled_methods
from gapwise.stages.problems.multiclass import Multiclass


class Wrong(python_task.Pairs):
    """Pairs that are wrong in ways that a run would not notice at its beginning; `how` says which."""

    made = 0

    def __init__(self, split: str, how: str, n: int = 4) -> None:
        super().__init__(split, n=n)
        self.how = how
        Wrong.made += 1
        if how == "unseeded":
            self.table += 1e-3 * Wrong.made
        if how == "other d" and split == "test":
            self.losses[:] = 0.5

    def decode(self, i: int, theta: np.ndarray) -> Any:
        return self.truths[i] if self.how == "decode" else super().decode(i, theta)

    def max_oracle(self, i: int, theta: np.ndarray) -> Any:
        if self.how != "never 2":
            return super().max_oracle(i, theta)
        worth = np.where((self.all == 2).any(axis=1), -np.inf, self._scores(i, theta) + self.losses[i])
        return self.all[np.argmax(np.where((self.all == self.truths[i]).all(axis=1), self._scores(i, theta), worth))]


class Raising(python_task.Pairs):
    """Pairs of which `method` raises an error from its call number `when` on."""

    def __init__(self, split: str, method: str, when: int = 0) -> None:
        super().__init__(split)
        whole, self.calls = getattr(self, method), 0

        def call(i: int, *arguments: Any) -> Any:
            self.calls += 1
            if self.calls > when:
                raise KeyError("lost")
            return whole(i, *arguments)

        setattr(self, method, call)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_task, "Wrong", Wrong, raising=False)
    monkeypatch.setattr(python_task, "Raising", Raising, raising=False)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = carry_out(["check", *words, "--seconds", "0.2"])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_check__of_an_honest_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "python_task:Pairs", "n=5", "--workers", "3")
    assert code == 0, text
    lines = text.splitlines()
    assert lines[0] == "python_task:Pairs: oracle in Python, 5 blocks, d = 7"
    assert [line.split(":")[0].split()[-1] for line in lines if line.startswith("    ok")] == [
        "train", "test", "max_oracle", "again",
    ]  # fmt: skip
    assert re.search(r"cost  a call: max_oracle \d.* µs · decode .* · features .* · loss", text)
    assert lines[-1].startswith(
        "  take  python -m gapwise dataset=python_oracle dataset.oracle=python_task:Pairs +dataset.arg"
    )


def test_check__as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, "python_task:Pairs", "delay=0.002", "n=4", "--json", "--workers", "4")
    record = json.loads(text)
    assert (code, record["ok"], record["blocks"], record["d"], record["certainty"]) == (0, True, 4, 7, "exact")
    assert record["advice"] == ["solver=expensive_oracle", "compute=processes"]
    assert 4 * 0.002 < record["pass_seconds"] == 4 * (record["seconds"]["max_oracle"] + checks.STEP)
    code, text = said(capsys, "python_task:Lying", "how=truth", "--json")
    record = json.loads(text)
    assert (code, record["ok"], record["advice"], record["seconds"]) == (1, False, [], {})


WRONG = {
    (
        "Lying",
        "how=least",
    ): r"wrong  max_oracle: Lying\.max_oracle: block 0: at w = 0 \[.*\] is worth .* but the method's own answer",
    ("Lying", "how=random"): r"wrong  max_oracle: .* for the same theta",
    ("Lying", "how=truth is a float"): r"wrong  train: Lying\.truth: train block 0: its entries must be integers",
    ("Lying", "how=negative loss"): r"wrong  max_oracle: Lying\.loss: block 0: a loss must be finite and >= 0",
    ("Wrong", "how=other d"): r"wrong  test: Wrong\.loss: test block 0: the loss of the truth must be 0, is 0\.5",
    ("Wrong", "how=decode"): r"wrong  max_oracle: Wrong\.decode: block 0: at .* is worth .*expected the labelling that",
    ("Wrong", "how=never 2"): r"wrong  max_oracle: Wrong\.max_oracle: block \d: at .*expected the labelling that",
    ("Wrong", "how=unseeded"): r"wrong  again: Wrong\.\w+: train block 0: .*each process makes its own, so seed",
}


@pytest.mark.parametrize(("name", "words"), WRONG)
def test_check__names_what_is_wrong(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, f"python_task:{name}", *filter(None, [words]))
    assert re.search(WRONG[name, words], text), text
    assert code == 1
    assert f"{text.count(' wrong  ')} wrong; what follows from it was not tried" in text


@pytest.mark.parametrize("when", [0, 30])
@pytest.mark.parametrize("method", ["truth", "coordinates", "features", "loss", "max_oracle", "decode", "least_loss"])
def test_check__of_an_oracle_that_raises_names_class_method_block_and_line(method, when, capsys) -> None:
    code, text = said(capsys, "python_task:Raising", f"method={method}", f"when={when}")
    if code == 0:
        assert when > 0, text
    else:
        pattern = rf"wrong  \w+: Raising\.{method}: (\w+ )?block \d+: KeyError: 'lost' \(test_check\.py, line \d+\)"
        assert re.search(pattern, text), text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere:Poses",), "error: check: nowhere:Poses: cannot import 'nowhere'"),
        (("python_task:np",), "error: check: python_oracle: python_task:np is not a subclass of"),
        (("python_task:Pairs", "m=1"), r"error: check: python_task:Pairs cannot be made from .*argument 'm'"),
        (("python_task:Pairs", "+n=3"), r"error: check: \+n=3: expected KEY=VALUE, as in n_train=100"),
        (("multiclass_arrays", "file=x", "colour=1"), "error: check: dataset.colour: unknown key"),
    ],
)
def test_check__of_nothing_is_exit_code_2(words, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = said(capsys, *words)
    assert (code, text.count("\n")) == (2, 1), text
    assert re.match(message, text), text


def test_check__knows_approximate_oracles(capsys: pytest.CaptureFixture[str]) -> None:
    assert "gaps are estimates and certify nothing" in said(capsys, "python_task:Greedy")[1]
    code, text = said(capsys, "python_task:GreedyBounded")
    assert (code, "certify nothing" in text) == (0, False), text
    assert "its bound exceeds the truth" in text


class Untruthful(Multiclass):
    """Decodes the first class whatever the scores are."""

    def decode(self, i, theta, y, scratch):
        y[0] = 0


@pytest.mark.parametrize("wrong", [False, True])
def test_check__of_a_structure(wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_methods, "compiled", lambda problem: problem)  # each method takes a second to compile
    monkeypatch.setattr(checks, "_compiled_seconds", lambda problem, w, seconds: 2e-6)
    problem = (Untruthful if wrong else Multiclass)(*multiclass())
    report = check_problem("mine:Structure", problem)
    assert [finding.check for finding in report.findings if not finding.ok] == (
        ["oracles", "max-marginals", "n best"] if wrong else []
    )
    assert len(report.findings) == 10
    assert report.pass_seconds == (None if wrong else problem.n * 2e-6)
