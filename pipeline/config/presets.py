"""Presets of ``conf/solver``, read where Hydra does not compose them: for estimators."""

from __future__ import annotations

import copy
from functools import cache

from omegaconf import DictConfig, OmegaConf

from gapwise.pipeline.config import CONF
from gapwise.pipeline.config.settings import method_defaults, typed
from gapwise.stages.solver.options import MethodOptions


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
    cfg = _composed(name)
    options: MethodOptions = typed("solver", cfg, method_defaults(cfg))
    return options


def _composed(name: str) -> DictConfig:
    """A file of the group over the files that its list `defaults` names before `_self_`."""
    own = OmegaConf.load(CONF / "solver" / f"{name}.yaml")
    assert isinstance(own, DictConfig)
    bases = [str(base) for base in own.pop("defaults", []) if base != "_self_"]
    merged = OmegaConf.merge(*map(_composed, bases), own)
    assert isinstance(merged, DictConfig)
    return merged
