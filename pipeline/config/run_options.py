"""Groups of the configuration that change no number: where to compute, what to track, when to commit, where a run is."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from gapwise.pipeline.errors import ConfigError
from gapwise.pipeline.stage_graph import stages
from gapwise.stages.choice.rules import LOSS, PICKS
from gapwise.stages.reports import FORMATS
from gapwise.stages.reports.sweep_figures import FIGURES
from gapwise.storage.backend import location

MAX_SEED = 2**63 - 1


@dataclass
class ComputeOptions:
    """Where blocks are computed; never part of a key."""

    kind: str = "threads"
    workers: int | None = None
    address: str | None = None
    """Address of a dask scheduler (cluster)."""
    wait_seconds: float = 120.0
    """How long a pass waits for a worker while there is none (processes, cluster)."""

    def check(self) -> None:
        one_of("compute.kind", self.kind, ("serial", "threads", "processes", "cluster"))
        expect("compute.workers", self.workers, self.workers is None or self.workers >= 1, "an integer >= 1, or null")
        expect("compute.wait_seconds", self.wait_seconds, 0 < self.wait_seconds < math.inf, "seconds > 0")
        if self.kind == "cluster":
            known = self.address is not None and re.fullmatch(r"\w+://.+", self.address) is not None
            expect(
                "compute.address",
                self.address,
                known,
                "the address of a scheduler, e.g. compute.address=tcp://host:8786",
            )


@dataclass
class TrackingOptions:
    """Where a run is displayed besides its directory; never part of a key."""

    kind: str = "mlflow"
    uri: str | None = None

    def check(self) -> None:
        one_of("tracking.kind", self.kind, ("mlflow", "none"))


@dataclass
class CheckpointOptions:
    """How often the state is written."""

    every_seconds: float = 30.0

    def check(self) -> None:
        expect("checkpoint.every_seconds", self.every_seconds, 0 <= self.every_seconds < math.inf, "seconds >= 0")


@dataclass
class SnapshotOptions:
    """Whether the solve keeps snapshots of w, from which gaps are computed afterwards."""

    every_passes: float = 0.0
    """Least number of effective passes between two snapshots; 0: none."""
    every_share: float = 0.0
    """The same as a share of the passes so far at the current lambda: even spacing on a logarithmic axis."""
    rebase_passes: float | None = None
    """`solver.rebase_steps` as a multiple of n, which limits how close snapshots can be; None: as configured."""
    test: bool = False
    """Whether the mean loss on test blocks is computed as well."""
    keep: bool = True
    """Whether the copies of w stay in snapshots.zarr; never part of a key."""

    def check(self) -> None:
        for name in ("every_passes", "every_share"):
            value = getattr(self, name)
            expect(f"snapshots.{name}", value, 0 <= value < math.inf, "a number >= 0")
        apart = self.rebase_passes
        expect("snapshots.rebase_passes", apart, apart is None or 0 < apart < math.inf, "a number > 0, or null")

    @property
    def science(self) -> dict[str, object]:
        """What a run with these snapshots has that others have not; {} without snapshots."""
        if not self.every_passes:
            return {}
        others = {"every_share": self.every_share, "rebase_passes": self.rebase_passes, "test": self.test}
        return {"every_passes": self.every_passes, **{name: value for name, value in others.items() if value}}


@dataclass
class FigureOptions:
    """In which formats figures are saved."""

    formats: list[str] = field(default_factory=lambda: ["png"])

    def check(self) -> None:
        ok = bool(self.formats) and {*self.formats} <= {*FORMATS} and len({*self.formats}) == len(self.formats)
        expect(
            "figures.formats",
            self.formats,
            ok,
            f"some of {', '.join(FORMATS)}, each once, e.g. figures.formats=[png,pdf]",
        )


@dataclass
class RunOptions:
    """Where the run is stored, and which part of it to run now."""

    root: str = "runs"
    until: str | None = None
    """The last stage to run; the run can be completed later."""
    export: str | None = None
    """Folder for a frozen copy of the results."""
    refit: bool | None = None
    """Whether the lambda that held-out blocks chose is solved on all blocks; None: with data of one's own."""
    pick: str = PICKS[0]
    """How the losses of held-out blocks pick the lambda of `refit`."""
    criterion: str = LOSS
    """What lambda is chosen by: the loss, or a measure of the data set's structure; part of the key."""
    train_between: bool = False
    """Whether evaluate also measures training blocks between the breakpoints of a path."""
    managed: bool = False
    """Whether a program started this run: it then waits while another process works on it, and stops with the program."""

    def check(self) -> None:
        expect("run.root", self.root, bool(self.root), "a directory or a URL")
        try:
            root = location(self.root)
        except ValueError as error:
            raise ConfigError(f"run.root: {error}") from None
        if isinstance(root, Path):
            existing = next(path for path in (root, *root.parents) if path.exists())
            if not existing.is_dir():
                raise ConfigError(f"run.root: expected a directory, or one that can be made, but {existing} is a file")
        one_of("run.pick", self.pick, PICKS)
        expect(
            "run.criterion",
            self.criterion,
            bool(self.criterion),
            "loss, or a measure of the data set, such as chunk_f1",
        )
        if self.until is not None:
            one_of("run.until", self.until, tuple(stages()))


@dataclass
class SeedOptions:
    """The only key outside a group."""

    seed: int = 0

    def check(self) -> None:
        expect("seed", self.seed, 0 <= self.seed <= MAX_SEED, f"an integer from 0 to {MAX_SEED}")


@dataclass
class SweepOptions:
    """Many runs in one command: those of ``-m``, the folds of a cross-validation, or the variants of an experiment."""

    workers: int | None = None
    """Processes, each with one run at a time; null: one per core."""
    cv: int | None = None
    """Folds of a cross-validation of this configuration, e.g. 5: lambda is chosen on them; null: none."""
    variants: dict[str, list[str]] = field(default_factory=dict)
    """Variants of a sweep experiment: the name of each and its overrides, which come after those of the command line."""
    datasets: dict[str, list[str]] = field(default_factory=dict)
    """The same for data sets, between the command line's and the variant's; what is not installed is left out."""
    only: list[str] = field(default_factory=list)
    """The variants and data sets to run; all data sets if it names none, all variants if it names none."""
    figure: str = "methods"
    """The figure over all runs: frontier | methods | multiplane | paths | regimes | solvers | staleness | work."""
    cached_passes: float | None = None
    """`solver.max_passes` of the variants with a cache, whose passes take many more steps; experiments set it."""
    variant: str = ""
    """The name of this run among the variants; the sweep itself sets it."""
    dataset: str = ""
    """The name of its data set among `datasets`; the sweep itself sets it."""

    def check(self) -> None:
        expect("sweep.workers", self.workers, self.workers is None or self.workers >= 1, "an integer >= 1, or null")
        expect("sweep.cv", self.cv, self.cv is None or self.cv >= 2, "a number of folds >= 2, or null")
        if self.cv is not None and self.variants:
            raise ConfigError("sweep.cv: validates one configuration, and this experiment has variants; leave out one")
        one_of("sweep.figure", self.figure, FIGURES)
        both = next((name for name in self.datasets if name in self.variants), None)
        if both is not None:
            raise ConfigError(f"sweep.datasets: there is a variant named {both!r} too; give it another name")
        known = [*self.variants, *self.datasets]
        if unknown := [name for name in self.only if name not in known]:
            raise ConfigError(f"sweep.only: no variant {unknown[0]!r}; there are: {', '.join(known)}")

    @property
    def wanted(self) -> list[str]:
        """The variants to run."""
        return [name for name in self.only if name in self.variants] or [*self.variants]

    @property
    def wanted_datasets(self) -> list[str]:
        """The data sets to run on; empty: the configured one."""
        return [name for name in self.datasets if name in self.only] or [*self.datasets]


def expect(name: str, value: object, ok: bool, expected: str) -> None:
    """Raise ConfigError, naming the key, unless `ok`."""
    if not ok:
        raise ConfigError(f"{name}: expected {expected}, got {value!r}")


def one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ConfigError, naming the key and listing the choices, unless `value` is one of them."""
    expect(name, value, value in choices, "one of " + ", ".join(choices))


def default_workers() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
