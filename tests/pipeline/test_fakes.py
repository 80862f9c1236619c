"""The fakes of `fake_stages` against what they replace: both must accept the same calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any

import fake_stages
import pytest

MADE_UP = {"Features", "CertificateError"}
"""Classes of which only the constructor's place and a few attributes are imitated; they are compared by what is used."""

FUNCTIONS = [
    (module, name)
    for module, fake in fake_stages.modules().items()
    for name, value in vars(fake).items()
    if inspect.isfunction(value)
]


def lacks(fake: Callable[..., Any], real: Callable[..., Any]) -> list[str]:
    """Parameters in which a call of `real` would fail on `fake`, or the other way round."""
    ours, theirs = (inspect.signature(function).parameters for function in (fake, real))
    takes_any = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    wrong = [name for name, p in ours.items() if p.kind is not p.VAR_KEYWORD and name not in theirs]
    wrong += [name for name in theirs if name not in ours and not takes_any]
    positional = [[name for name, p in side.items() if p.kind is p.POSITIONAL_OR_KEYWORD] for side in (ours, theirs)]
    wrong += [a for a, b in zip(*positional, strict=False) if a != b and a not in wrong]
    return wrong


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_fake__takes_what_the_real_one_takes(module: str, name: str) -> None:
    real = getattr(import_module(module), name)
    assert lacks(vars(fake_stages.modules()[module])[name], real) == []


@pytest.mark.parametrize("module", fake_stages.modules())
def test_fake__has_only_names_that_the_real_module_has(module: str) -> None:
    real = import_module(module)
    assert [name for name in vars(fake_stages.modules()[module]) if name[0] != "_" and not hasattr(real, name)] == []


@pytest.mark.parametrize("name", ["Task", "Spacing", "Session"])
def test_record__has_the_fields_of_the_real_one(name: str) -> None:
    real, fake = getattr(import_module("gapwise.stages.solve"), name), getattr(fake_stages, name)
    assert [field.name for field in fields(fake)] == [field.name for field in fields(real)]


def test_trace__has_the_columns_of_the_real_one() -> None:
    from gapwise.stages.solver.counts import TRACE

    assert tuple(fake_stages.trace()) == tuple(TRACE)


def test_lacks__sees_a_difference() -> None:
    assert lacks(lambda a, b: None, lambda a, b: None) == []
    assert lacks(lambda a, **ways: None, lambda a, *, key: None) == []
    assert lacks(lambda a, extra: None, lambda a: None) == ["extra"]
    assert lacks(lambda a: None, lambda a, *, key: None) == ["key"]
    assert lacks(lambda b, a: None, lambda a, b: None) == ["b", "a"]
