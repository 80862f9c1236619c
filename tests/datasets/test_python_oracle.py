"""An oracle in Python is tried before a run rests on it: what cannot be right is refused, naming method and block."""

from __future__ import annotations

import logging

import pytest
import python_task
from memory_sink import read

from gapwise.stages.datasets import DataError, open_dataset
from gapwise.stages.datasets.python_oracle import PythonOracleReader


def features(**arguments: object) -> tuple:
    return read(open_dataset("python_oracle", {"oracle": "python_task:Lying", "arguments": arguments}))


REFUSED = {
    "truth": r"Lying\.max_oracle: block 0: at w = 0 \[.*\] is worth .* but the method's own answer 0; .* let `features` or",
    "least": r"Lying\.max_oracle: block 0: at w = 0 \[.*\] is worth",
    "without loss": r"Lying\.max_oracle: block \d: at .* \[.*\] is worth",
    "random": r"Lying\.max_oracle, decode: block 0: gave different answers for the same theta",
    "wraps": r"Lying\.max_oracle: block 0: .*must be 0, ..., 2, got",
    "exit": r"Lying\.max_oracle: block 0: it called sys\.exit\(0\)",
    "complex features": r"Lying\.features: train block 0: .*must be real numbers, got complex128",
    "NaN features": r"Lying\.features: train block 0: .*must be finite, entry 1 is NaN",
}


@pytest.mark.parametrize("how", REFUSED)
def test_reader__refuses_an_oracle_that_cannot_be_right(how: str) -> None:
    with pytest.raises(DataError, match=rf"dataset\.oracle: {REFUSED[how]}"):
        features(how=how, n=6)


@pytest.mark.parametrize("block", [0, 5])
def test_reader__tries_the_first_and_the_last_block(block: int) -> None:
    with pytest.raises(DataError, match=f"max_oracle: block {block}: at w = 0"):
        features(how="truth", n=6, block=block)


def test_reader__takes_labellings_without_features_for_none_of_the_block() -> None:
    sink, facts = features(how="only the truth has features", n=6)
    assert facts["d"] == 7
    assert len(sink.arrays("train")["labels"]) == 12


@pytest.mark.parametrize("declares", [False, True])
def test_reader__says_that_files_are_not_seen_unless_they_are_declared(caplog, monkeypatch, declares: bool) -> None:
    if declares:
        monkeypatch.setattr(python_task.Lying, "files", classmethod(lambda cls, **arguments: ()), raising=False)
    with caplog.at_level(logging.WARNING, logger="gapwise"):
        features(n=6)
    assert ("python_task:Lying does not define files()" in caplog.text) is not declares


@pytest.mark.parametrize("given", ["new.txt", "../new", "", "two words"])
def test_new_input__that_cannot_be_a_split_is_refused(given: str) -> None:
    reader, meta = PythonOracleReader, {"oracle": "my:Own"}
    assert reader.read_new(["new-1"], meta).raw == "new-1"
    assert reader.read_new(['{"split": "new"}'], meta).raw == {"split": "new"}
    with pytest.raises(DataError, match=r"my:Own reads its inputs itself; expected the name of a split"):
        reader.read_new([given], meta)
