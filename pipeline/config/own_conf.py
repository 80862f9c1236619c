"""Hydra also finds YAML in the folders `conf` of parts (`gapwise.parts`)."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from gapwise import parts


class OwnConf(SearchPathPlugin):
    """Adds the folders behind Gapwise's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in parts.conf():
            search_path.append("gapwise.parts", folder.as_uri())


def register() -> None:
    """Tell Hydra, once a process."""
    Plugins.instance().register(OwnConf)
