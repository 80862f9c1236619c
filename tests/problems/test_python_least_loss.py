"""Least losses of an oracle in Python or of a program: a number >= 0 or infinity, or an error with method and block."""

from __future__ import annotations

import math

import pytest
from lying import lying
from python_task import Lying


@pytest.mark.parametrize("answer", ["x", None, [1.0], [[0], [0, 1]], True, math.nan, -1.0, 10**400, {"a": 1}, 1j])
def test_least_loss__that_is_no_number_names_method_and_block(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lying, "least_loss", lambda self, i: answer)
    with pytest.raises(ValueError, match=r"^Lying\.least_loss: block 2: "):
        lying("").least_loss(2)


@pytest.mark.parametrize("answer", [0, 0.5, math.inf])
def test_least_loss__may_be_any_number_from_zero(answer: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lying, "least_loss", lambda self, i: answer)
    assert lying("").least_loss(2) == answer
