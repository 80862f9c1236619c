"""Users' own code, named as ``module:Class``."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
from pathlib import Path
from types import ModuleType


@functools.cache
def oracle_source(oracle: str) -> str:
    """Hash of the file that defines ``module:Class``; part of the features' key, because results depend on the oracle."""
    file = inspect.getsourcefile(user_module(oracle))
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else ""


def user_module(oracle: str) -> ModuleType:
    """Import the module of ``module:Class``; ValueError says how to make it importable."""
    name = oracle.partition(":")[0]
    try:
        return importlib.import_module(name)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"python_oracle: cannot import {name!r} of {oracle!r} ({error}); expected module:Class, importable on every "
            "machine that computes (set PYTHONPATH)"
        ) from error
