"""Hydra reads each YAML once a process where it composes many times, as for the variants of sweeps.

Hydra parses every file again for each composition. Composing the runs of a large sweep takes a third longer so.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hydra.core.global_hydra import GlobalHydra
from hydra.plugins.config_source import ConfigSource


@runtime_checkable
class Repository(Protocol):
    """What Hydra's loader reads its files from; Hydra copies it for each composition."""

    def load_config(self, config_path: str) -> object: ...
    def get_sources(self) -> Sequence[ConfigSource]: ...


def read_once() -> bool:
    """Make the compositions of the present command share what they read; each gets copies.

    False where Hydra's loader has no such repository, as its releases need not have. Then each composition reads the files.
    """
    repository = vars(GlobalHydra.instance().config_loader()).get("repository")
    if not isinstance(repository, Repository):
        return False
    if "load_config" in vars(repository):
        return True
    results: dict[tuple[str, ...], object] = {}
    read = type(repository).load_config

    def load_config(self: Repository, config_path: str) -> object:
        known = config_path, *(source.path for source in self.get_sources())  # hydra.searchpath changes them
        if known not in results:
            results[known] = read(self, config_path)
        return copy.deepcopy(results[known])

    vars(repository)["load_config"] = types.MethodType(
        load_config, repository
    )  # a copy is bound to the copied repository
    return True
