"""One command: Hydra composes the configuration; `pipeline.run`, or Hydra's plugins in `pipeline.sweep`, carry it out."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from gapwise import parts
from gapwise.pipeline.config import CONF, choices
from gapwise.pipeline.config.removed import hint
from gapwise.pipeline.errors import BAD_CONFIGURATION, DONE, FAILED, ConfigError, did_you_mean, refuse
from gapwise.pipeline.run import run

ONE_RUN = "--why: explains one run, and this is a sweep; the sweep itself says which runs are complete"


class ConfOfParts(SearchPathPlugin):
    """Hydra also finds YAML in the folders `conf` of parts (`gapwise.parts`), behind Gapwise's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in parts.conf():
            search_path.append("gapwise.parts", folder.as_uri())


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


def explain(error: Exception, words: Iterable[str] = ()) -> str:
    """An error of Hydra or OmegaConf about the overrides `words` in one line, with the keys or choices there are."""
    cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
    if isinstance(cause, OmegaConfBaseException) and cause.full_key and "is not in struct" in str(cause):
        given = (word.lstrip("+") for word in words)
        values = (word for word in given if word.partition("=")[0] == cause.full_key)
        if says := next(filter(None, map(hint, (str(cause.full_key), *values))), None):
            return says
        groups_of = cause.parent_node if isinstance(cause.parent_node, DictConfig) else DictConfig({})
        known, wanted = sorted(map(str, groups_of)), str(cause.full_key).rpartition(".")[2]
        inside = [name for name in known if isinstance(groups_of.get(name), DictConfig) and wanted in groups_of[name]]
        near = f" (did you mean {inside[0]}.{wanted}?)" if inside else did_you_mean(wanted, known)
        return f"{cause.full_key}: unknown key{near}; there are: {', '.join(known)}"
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Config search path", "provider=", "Set the env"))]
    text = " ".join(lines)
    if missing := re.search(r"Could not find '(\w+)/([^']*)'", text):
        group, wanted = missing.groups()
        if says := hint(f"{group}={wanted}"):
            return says
        if there := choices(group):
            return f"{group}: there is no {wanted!r}{did_you_mean(wanted, there)}; there are: {', '.join(there)}"
    return text


def compose_and_run() -> int:
    """Do what sys.argv says; returns the exit code."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach this function and are printed in one line
    explains = "--why" in sys.argv
    sys.argv[1:] = [word for word in sys.argv[1:] if word != "--why"]
    flags = [word for word in sys.argv[1:] if word in ("-m", "--multirun")]  # may be anywhere; move them first
    sys.argv[1:] = flags + [readable(word, bool(flags)) for word in sys.argv[1:] if word not in flags]
    if explains:
        if flags:
            return refuse(ConfigError(ONE_RUN), BAD_CONFIGURATION)
        sys.argv.append("hydra.mode=RUN")
    Plugins.instance().register(ConfOfParts)
    codes = []

    def job(cfg: DictConfig) -> int:
        if not explains:
            codes.append(run(cfg))
        elif cfg.sweep.variants or cfg.sweep.cv is not None:
            codes.append(refuse(ConfigError(ONE_RUN), BAD_CONFIGURATION))
        else:
            from gapwise.pipeline.why import why

            codes.append(why(cfg))
        return codes[-1]

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(job)()
    except SystemExit as end:  # of a sweep
        if end.code == BAD_CONFIGURATION and any(word.startswith("--") for word in sys.argv):
            print("error: keys have no dashes, as in path.eps=0.1; --help lists them", file=sys.stderr)
        return end.code if isinstance(end.code, int) else FAILED
    except (HydraException, OmegaConfBaseException) as error:
        print(f"error: {explain(error, sys.argv)}", file=sys.stderr)
        return BAD_CONFIGURATION
    except ConfigError as error:
        return refuse(error, BAD_CONFIGURATION)
    return max(codes, default=DONE)
