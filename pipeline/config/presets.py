"""Presets of ``conf/solver``, read where Hydra does not compose them: for estimators, which need no OmegaConf."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from gapwise.pipeline.config import CONF
from gapwise.records import Facts, Record
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import MethodOptions

NAMES = {"sampling": "sampler"}
"""Keys of the group whose fields have another name."""


def solver_presets() -> list[str]:
    """Names of all presets, sorted."""
    return sorted(file.stem for file in (CONF / "solver").glob("*.yaml"))


def solver_preset(name: str) -> MethodOptions:
    """The options of a preset, as a run has them with ``solver=name``.

    Raises
    ------
    FileNotFoundError
        If there is no such preset.
    """
    return copy.deepcopy(_checked(name))  # callers may change theirs


@cache
def _checked(name: str) -> MethodOptions:
    values = {NAMES.get(key, key): value for key, value in _composed(name).items()}
    options: MethodOptions = _over(method_options(values["method"]), values)
    options.check()
    return options


def _composed(name: str) -> Record:
    """A file of the group over the files that its list `defaults` names before `_self_`."""
    own = yaml.safe_load((CONF / "solver" / f"{name}.yaml").read_text(encoding="utf-8"))
    values: Record = {}
    for base in own.pop("defaults", []):
        values = values if base == "_self_" else _merged(values, _composed(base))
    return _merged(values, own)


def _merged(below: Facts, own: Facts) -> Record:
    """`own` over `below`, group by group."""
    both = {key for key in own if isinstance(own[key], Mapping) and isinstance(below.get(key), Mapping)}
    return {**below, **{key: _merged(below[key], own[key]) if key in both else own[key] for key in own}}


def _over(default: Any, value: Any) -> Any:
    """The values of a file in the place of those of a dataclass; whole numbers become floats where it has floats."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return dataclasses.replace(default, **{key: _over(getattr(default, key), value[key]) for key in value})
    return float(value) if isinstance(default, float) else value
