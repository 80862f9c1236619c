"""Hydra loads its plugins from this package: ``hydra/launcher=gapwise`` and ``hydra/sweeper=gapwise``."""

from gapwise.pipeline.sweep.launcher import SweepLauncher, SweepSweeper


class Launcher(SweepLauncher):
    """The launcher under a name that Hydra accepts."""


class Sweeper(SweepSweeper):
    """The sweeper under a name that Hydra accepts."""
