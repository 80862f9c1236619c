"""Hydra also finds YAML in the folder `conf` of your own parts (`gapwise.parts`)."""

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin

from gapwise import parts


class OwnConf(SearchPathPlugin):
    """Adds the folder behind Gapwise's own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        own = parts.conf()
        if own is not None:
            search_path.append("gapwise.parts", own.as_uri())


def register() -> None:
    """Tell Hydra, once a process."""
    Plugins.instance().register(OwnConf)
