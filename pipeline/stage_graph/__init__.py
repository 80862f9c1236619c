"""The stages of a run in their order, one file each, which defines its `Stage` as STAGE. Each needs those before it.

A stage file imports its heavy dependencies inside its functions, so that a command with nothing to do can list all stages
without loading numba or zarr.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # help lists the stages without loading the storage
    from gapwise.records import Facts


ORDER = ("featurize", "init_path", "solve", "verify", "evaluate", "refit", "report")

Job: TypeAlias = Any
"""`gapwise.pipeline.job.Job`; its module, like those of the next three types, imports this one."""
Settings: TypeAlias = Any
"""`gapwise.pipeline.config.settings.Settings`"""
RunDir: TypeAlias = Any
"""`gapwise.pipeline.rundir.RunDir`"""
Export: TypeAlias = Any
"""`gapwise.pipeline.export.Export`"""


@dataclass(frozen=True)
class Stage:
    """One stage: what it does, leaves behind and exports.

    Attributes
    ----------
    name : str
        Also the name of its module.
    run : callable
        Does the work; returns JSON-able facts, which the manifest keeps.
    wanted : callable, optional
        Of a stage that is not part of every run: whether it is part of those with these settings.
    every_invocation : bool
        Whether it runs in every invocation and finds out itself what is left to do, because runs share its output.
    commits : bool
        Whether it keeps what it has done before its end; a stop of any other stage ends it wherever it is.
    outputs : tuple of str
        Files and trees of the run directory that later stages and result.json are made from; the manifest keeps their
        checksums. ``tree:pattern,pattern`` are the children of a tree that match.
    unfinished : callable, optional
        Whether the stage, although done, has more to do under these settings; gets its facts.
    discard : callable, optional
        Removes outputs that were found damaged and that running again would not repair.
    export : callable, optional
        Writes the frozen copy of its results that `run.export` asks for.
    result : callable, optional
        Its part of result.json.
    """

    name: str
    run: Callable[[Job], Mapping[str, object]]
    wanted: Callable[[Settings], bool] | None = None
    every_invocation: bool = False
    commits: bool = False
    outputs: tuple[str, ...] = ()
    unfinished: Callable[[Facts, Settings], bool] | None = None
    discard: Callable[[Job], None] | None = None
    export: Callable[[Export], None] | None = None
    result: Callable[[Settings, RunDir], Mapping[str, object]] | None = None

    def has_more(self, done: Mapping[str, Mapping[str, object]], settings: Settings) -> bool:
        """Whether the stage has to be run or continued; `done` holds the manifest's facts by stage."""
        facts = done.get(self.name)
        return facts is None or (self.unfinished is not None and self.unfinished(facts, settings))


@functools.cache
def stages() -> Mapping[str, Stage]:
    """Every stage by its name, in order."""
    return {name: import_module(f"{__name__}.{name}").STAGE for name in ORDER}


def flow() -> dict[str, Stage]:
    """The stages of every run, in order."""
    return {name: stage for name, stage in stages().items() if stage.wanted is None}


def flow_of(settings: Settings) -> dict[str, Stage]:
    """The stages of a run with these settings, in order."""
    return {name: stage for name, stage in stages().items() if stage.wanted is None or stage.wanted(settings)}


def after(name: str) -> tuple[str, ...]:
    """All stages that come after stage `name`, and so are done again with it, in order."""
    return ORDER[ORDER.index(name) + 1 :]


def up_to(name: str, settings: Settings) -> list[str]:
    """The stages of a run that ends with stage `name`, in order."""
    return [other for other in flow_of(settings) if other not in after(name)]
