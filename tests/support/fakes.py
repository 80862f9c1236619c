"""A monkeypatch whose fake functions refuse every call that the functions they replace would refuse.

A fake has its own signature. When the real one changes, a test with the old fake would still pass and prove nothing. So
every call of a fake is first bound to the real signature, as `unittest.mock.create_autospec` does.
"""

from __future__ import annotations

import functools
import inspect
import pkgutil
import types
from collections.abc import Callable
from typing import Any

import pytest

UNSET = object()


class CheckedPatch(pytest.MonkeyPatch):
    """`monkeypatch.setattr` puts a guard before every function that replaces something callable."""

    def setattr(self, target: Any, name: Any, value: Any = UNSET, raising: bool = True) -> None:
        if value is UNSET:  # setattr("package.module.name", value)
            real = pkgutil.resolve_name(target) if isinstance(name, types.FunctionType) and raising else None
            super().setattr(target, checked(name, real), raising=raising)
        else:
            super().setattr(target, name, checked(value, getattr(target, name, None)), raising)


def checked(fake: Any, real: Any) -> Any:
    """`fake`, refusing what `real` would refuse; unchanged if one of them is not a function."""
    if not isinstance(fake, types.FunctionType) or not callable(real):
        return fake
    try:
        signature = inspect.signature(real)
    except ValueError:  # built in, without a signature that Python can read
        return fake

    @functools.wraps(fake)
    def guard(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        return fake(*args, **kwargs)

    return guard


def assert_same_parameters(fake: type, real: type) -> None:
    """Assert that `fake` has every public method of the protocol or class `real`, with the same parameters."""
    for name, method in vars(real).items():
        if name.startswith("_") or not isinstance(method, types.FunctionType):
            continue
        assert parameters(getattr(fake, name)) == parameters(method), f"{fake.__name__}.{name}"


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]
