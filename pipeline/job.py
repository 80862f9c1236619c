"""The argument of every stage."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapwise.pipeline.compute.local import Compute
    from gapwise.pipeline.config.settings import Settings
    from gapwise.pipeline.interrupt import Stop
    from gapwise.pipeline.progress import Progress
    from gapwise.pipeline.rundir import RunDir
    from gapwise.pipeline.tracking.mlflow import Tracker
    from gapwise.stages.problems.parallel import Spread
    from gapwise.stages.problems.protocol import Problem
    from gapwise.stages.solver.path.rule import PathStart
    from gapwise.storage.backend import Location


@dataclass
class Job:
    """Settings and directories of one run, and ways to compute and to report."""

    settings: Settings
    dir: RunDir
    features_path: Location
    features_key: str
    compute: Compute
    progress: Progress
    stop: Stop
    tracker: Tracker
    seconds: dict[str, float] = field(default_factory=dict)
    """Of each stage that ran in this invocation, and `compiling` in all of them."""
    start: PathStart | None = None
    """The result of init_path if it ran in this process, so that solve need not compute it again."""

    @cached_property
    def train(self) -> Problem:
        """The training problem, in memory unless it is large: steps read it at random places."""
        from gapwise.stages.featurize import open_problem

        return open_problem(self.features_path, "train", hold=True)

    @cached_property
    def spread(self) -> Spread:
        """Ways to spread the blocks of this run's problems."""
        from gapwise.stages.problems import calls_python
        from gapwise.storage.features import open_features

        processes = self.compute.kind == "processes"
        python = processes and calls_python(open_features(self.features_path).meta["structure"])
        return self.compute.spread(self.features_path, self.dir.path / ".tmp-weights", python)

    def report(self, done: int, total: int, activity: str) -> None:
        """Show progress of a stage that commits nothing until its end; ends the stage if a stop was requested."""
        self.stop.check()
        self.progress.report(done, total, activity)
