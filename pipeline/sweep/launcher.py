"""Hydra's part of a sweep: which jobs there are, and how they are composed and run (`hydra_plugins.gapwise_sweeps`).

Hydra's own sweeper crosses single overrides. Ours crosses them with named lists of overrides, the variants and data sets of
an experiment, or with the folds of a cross-validation. The launcher composes all jobs before any begins, runs those that
are not complete on worker processes, and stops with a commit of each.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType, Quote, QuotedString
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict

if TYPE_CHECKING:  # Hydra loads this file for every command
    from gapwise.pipeline.config.run_options import SweepOptions

WHOLE = "all training blocks"
"""Name of the last job of a cross-validation."""


class SweepSweeper(BasicSweeper):
    """Crosses the values of a command line with the variants and data sets, or the folds, that the group `sweep` names."""

    def sweep(self, arguments: list[str]) -> None:
        """Launch all jobs; leaves with the worst of their exit codes.

        Raises
        ------
        SystemExit
            Always: Hydra passes no result on to its command.
        """
        from gapwise.pipeline.config.settings import sweep_options

        assert self.config is not None
        assert self.launcher is not None
        assert self.hydra_context is not None
        options = sweep_options(self.config)
        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        words = parser.parse_overrides([*self._parse_config(), *arguments])
        (crossed,) = self.split_arguments(words, None)
        batches = [[*unique(crossed, options)]]
        if options.cv is not None:
            batches = [[*folds(job, options.cv)] for job in crossed]
        codes = [job.return_value for batch in batches for job in self.launcher.launch(batch, initial_job_idx=0)]
        raise SystemExit(max((code for code in codes if isinstance(code, int)), default=0))


def unique(crossed: Sequence[Sequence[str]], options: SweepOptions) -> Iterator[list[str]]:
    """The overrides of every job, each set once: variants within crossed values within data sets.

    Overrides of a data set replace those of the command line with the same key, and are replaced by those of a variant.
    """
    seen = set()
    for dataset in options.wanted_datasets or [""]:
        for job in crossed:
            for variant in options.wanted or [""]:
                words = [*job, *options.datasets.get(dataset, ()), *options.variants.get(variant, ())]
                names = {"sweep.dataset": dataset, "sweep.variant": variant}
                words += [f"{key}={quoted(name)}" for key, name in names.items() if name]
                one = [*{word.partition("=")[0].lstrip("+~"): word for word in words}.values()]
                if tuple(one) not in seen:
                    seen.add(tuple(one))
                    yield one


def folds(job: Sequence[str], number: int) -> Iterator[list[str]]:
    """The jobs of a cross-validation: one a fold, and one on all training blocks."""
    for fold in range(number):
        name = quoted(f"fold {fold} of {number}")
        yield [*job, f"dataset.validation={{folds:{number},fold:{fold}}}", f"sweep.variant={name}"]
    yield [*job, f"sweep.variant={quoted(WHOLE)}"]


def quoted(name: str) -> str:
    """A name as Hydra's grammar reads any text."""
    return QuotedString(name, Quote.single).with_quotes()


class SweepLauncher(Launcher):
    """Runs jobs on processes of this machine, or with `compute=cluster` on the workers of a dask scheduler."""

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        from gapwise.pipeline.config import groups

        self.loader, self.config, self.groups = hydra_context.config_loader, config, groups()
        self.known: dict[tuple[str, ...], tuple[DictConfig, str | None]] = {}

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run a batch; every job returns the exit code of the batch.

        Raises
        ------
        HydraException or OmegaConfBaseException
            If a job cannot be composed; then none has begun.
        """
        from gapwise.pipeline.sweep.plan import Asked
        from gapwise.pipeline.sweep.run import run_batch

        before = HydraConfig.instance().cfg
        HydraConfig.instance().set_config(self.config)
        try:
            asked = [Asked(*self.composed(words), tuple(words)) for words in job_overrides]
            code = run_batch(asked)
        finally:
            HydraConfig.instance().cfg = before
        return [JobReturn(words, job.cfg, status=JobStatus.COMPLETED, _return_value=code)
                for words, job in zip(job_overrides, asked, strict=True)]  # fmt: skip

    def composed(self, words: Sequence[str]) -> tuple[DictConfig, str | None]:
        """The configuration of a job, and its experiment.

        Jobs that choose the same presets share one composition, which takes Hydra 90 ms.
        """
        parsed = OverridesParser.create(config_loader=self.loader).parse_overrides([*words])
        values = [word for word in parsed if self._sets_value(word)]
        others = tuple(str(word.input_line) for word in parsed if word not in values)
        if others not in self.known:
            cfg = self.loader.load_sweep_config(self.config, [*others])
            experiment = cfg.hydra.runtime.choices.get("experiment")
            with open_dict(cfg):
                del cfg["hydra"]
            self.known[others] = cfg, experiment
        shared, experiment = self.known[others]
        cfg = copy.deepcopy(shared)
        for word in values:
            OmegaConf.update(cfg, word.key_or_group, word.value(), merge=True)
        OmegaConf.set_struct(cfg, False)
        return cfg, experiment

    def _sets_value(self, word: Override) -> bool:
        """Whether an override is a plain ``key=value``: it chooses no preset, adds and deletes nothing, is not Hydra's."""
        plain = word.type == OverrideType.CHANGE and word.package is None and word.key_or_group not in self.groups
        return plain and re.match(r"hydra[./]", word.key_or_group) is None
