"""The package gapwise: what it exports, that it is installed, and what importing it costs."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

import gapwise

ROOT = Path(__file__).resolve().parents[2]


def test_names__are_those_of_the_modules_that_define_them() -> None:
    assert sorted([*gapwise.HOME, "__version__"]) == sorted(gapwise.__all__) == sorted(dir(gapwise))
    assert gapwise.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, module in gapwise.HOME.items():
        assert getattr(gapwise, name) is getattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        gapwise.nothing  # noqa: B018
