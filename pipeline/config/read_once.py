"""Hydra reads each YAML once a process where it composes many times, as for the variants of sweeps.

Hydra parses every file again for each composition, which takes two fifths of it.
"""

from __future__ import annotations

import copy

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository, IConfigRepository
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource


class ReadOnce(ConfigRepository):
    """A repository that keeps what it has read; each composition gets copies."""

    def __init__(self, inner: IConfigRepository, results: dict[str, ConfigResult | None] | None = None):
        self.inner = inner
        self.results = {} if results is None else results

    def __deepcopy__(self, memo: object) -> ReadOnce:
        """Hydra copies its repository for each composition; the copies share what has been read."""
        return ReadOnce(copy.copy(self.inner), self.results)

    def initialize_sources(self, config_search_path: ConfigSearchPath) -> None:
        self.inner.initialize_sources(config_search_path)
        self.results = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        if config_path not in self.results:
            self.results[config_path] = self.inner.load_config(config_path)
        return copy.deepcopy(self.results[config_path])

    def get_schema_source(self) -> ConfigSource:
        return self.inner.get_schema_source()

    def group_exists(self, config_path: str) -> bool:
        return bool(self.inner.group_exists(config_path))

    def config_exists(self, config_path: str) -> bool:
        return bool(self.inner.config_exists(config_path))

    def get_group_options(self, group_name: str, results_filter: ObjectType | None = ObjectType.CONFIG) -> list[str]:
        return list(self.inner.get_group_options(group_name, results_filter))

    def get_sources(self) -> list[ConfigSource]:
        return list(self.inner.get_sources())


def read_once() -> None:
    """Make the compositions of the present command share what they read."""
    loader = GlobalHydra.instance().config_loader()
    if isinstance(loader, ConfigLoaderImpl) and not isinstance(loader.repository, ReadOnce):
        loader.repository = ReadOnce(loader.repository)
