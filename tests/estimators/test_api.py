"""The package gapwise: what it exports, that it is installed, and what importing it costs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
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


def test_facade__is_harmless_under_a_second_name() -> None:
    spec = importlib.util.spec_from_file_location("gapwise", gapwise.__file__)
    assert spec is not None
    assert spec.loader is not None
    verifier = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(verifier)
    assert verifier.MulticlassSVM is gapwise.MulticlassSVM


def test_import__loads_nothing_heavy() -> None:
    heavy = "{'numba', 'sklearn', 'xarray', 'zarr', 'numpy'}"
    code = f"import sys, gapwise; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
