"""One command: Hydra composes the configuration, and `gapwise.pipeline.run` or `gapwise.pipeline.sweep` carries it out."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from gapwise.pipeline.config import CONF, own_conf
from gapwise.pipeline.config.settings import explain
from gapwise.pipeline.errors import BAD_CONFIGURATION, INTERRUPTED, ConfigError, refuse
from gapwise.pipeline.run import run

if TYPE_CHECKING:
    from gapwise.pipeline.sweep.plan import Asked

_codes: list[int] = []
_asked: list[Asked] = []
_explain: list[str] = []
"""The word --why, if it is given."""


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _job(cfg: DictConfig) -> None:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    if any(code >= INTERRUPTED for code in _codes):
        return  # an interrupted sweep starts no more runs
    sweep = cfg.get("sweep") or {}
    if sweep.get("variants") or sweep.get("cv") is not None or HydraConfig.get().mode == RunMode.MULTIRUN:
        _one_of_many(cfg)
    elif _explain:
        from gapwise.pipeline.why import why

        _codes.append(why(cfg))
    else:
        _codes.append(run(cfg))


def _one_of_many(cfg: DictConfig) -> None:
    """A job of a sweep, or a configuration that describes one."""
    if _explain:
        text = "--why: explains one run, and this is a sweep; the sweep itself says which runs are complete"
        _codes.append(refuse(ConfigError(text), BAD_CONFIGURATION))
        return
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


def readable(word: str, sweeps: bool = False) -> str:
    """`word` with quotes around what Hydra's grammar cannot read, such as the names of many files.

    That is the value of KEY=VALUE, or where it is a list, or one of several values of `sweeps`, each of its parts.
    """
    key, equals, value = word.partition("=")
    if not equals or word.startswith("-") or _is_read(word, sweeps):
        return word
    begin, end = ("[", "]") if value.startswith("[") and value.endswith("]") else ("", "")
    if begin or sweeps:
        each = [part.strip() for part in value.removeprefix(begin).removesuffix(end).split(",")]
        parts = ",".join(part if _is_read(f"{key}={begin}{part}{end}") else _quoted(part) for part in each)
        if _is_read(f"{key}={begin}{parts}{end}"):
            return f"{key}={begin}{parts}{end}"
    return f"{key}={_quoted(value)}"


def _is_read(word: str, sweeps: bool = True) -> bool:
    """Whether Hydra's grammar reads a word as more than the name of a file; without `sweeps` a comma may be in one."""
    try:
        parsed = OverridesParser.create().parse_override(word)
    except HydraException:
        return False
    return sweeps or not parsed.is_sweep_override() or not os.path.exists(word.partition("=")[2])


def _quoted(value: str) -> str:
    return QuotedString(value, Quote.single).with_quotes()


def compose_and_run() -> int:
    """Do what sys.argv says; returns the exit code."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach this function and are printed in one line
    _explain.extend(word for word in sys.argv[1:] if word == "--why")
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in _explain]
    flags = [word for word in sys.argv[1:] if word in ("-m", "--multirun")]  # may be anywhere; move them first
    sys.argv[1:] = flags + [readable(word, bool(flags)) for word in sys.argv[1:] if word not in flags]
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
