"""One command: Hydra composes the configuration, and `gapwise.pipeline.run` or `gapwise.pipeline.sweep` carries it out."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from gapwise.pipeline.config import CONF, own_conf
from gapwise.pipeline.config.settings import explain
from gapwise.pipeline.errors import BAD_CONFIGURATION, INTERRUPTED
from gapwise.pipeline.run import run

if TYPE_CHECKING:
    from gapwise.pipeline.sweep.plan import Asked

_codes: list[int] = []
_asked: list[Asked] = []


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _job(cfg: DictConfig) -> None:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if any(code >= INTERRUPTED for code in _codes):
        return  # an interrupted sweep starts no more runs
    sweep = cfg.get("sweep") or {}
    if cfg.get("papers"):
        from gapwise.pipeline.sweep.papers import papers

        _codes.append(papers(cfg))
    elif cfg.get("practice"):
        from gapwise.pipeline.practice.run import practice

        _codes.append(practice(cfg))
    elif sweep.get("variants") or sweep.get("cv") is not None or HydraConfig.get().mode == RunMode.MULTIRUN:
        _one_of_many(cfg)
    else:
        _codes.append(run(cfg))


def _one_of_many(cfg: DictConfig) -> None:
    """A job of a sweep, or a configuration that describes one."""
    from gapwise.pipeline.sweep.commands import cross_validation, sweep
    from gapwise.pipeline.sweep.folds import asks_for_folds
    from gapwise.pipeline.sweep.plan import has_variants, job_of_multirun

    if asks_for_folds(cfg):
        _codes.append(cross_validation(cfg))
    elif has_variants(cfg):
        _codes.append(sweep(cfg))
    elif (job := job_of_multirun(cfg)) is not None:
        _asked.append(job)  # they run together, once all of them are known to compose
    else:
        _codes.append(run(cfg))


def compose_and_run() -> int:
    """Do what sys.argv says; returns the exit code."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach this function and are printed in one line
    sys.argv[1:] = sorted(
        sys.argv[1:], key=lambda word: word not in ("-m", "--multirun")
    )  # -m may be anywhere; move it first
    own_conf.register()
    try:
        _job()
        if _asked:
            from gapwise.pipeline.sweep.commands import multirun

            _codes.append(multirun(_asked))
    except (HydraException, OmegaConfBaseException) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
        return BAD_CONFIGURATION
    return max(_codes, default=0)
