"""Configurations composed as the command line composes them."""

from __future__ import annotations

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from gapwise.pipeline.config.settings import CONF


def composed(*words: str) -> DictConfig:
    """The main configuration with these overrides."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", list(words))
