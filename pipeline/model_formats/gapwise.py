"""Gapwise's own form: a folder with model.json and .npy files, which `predict` and `load_model` read."""

from __future__ import annotations

from gapwise.stages.model.model import Model
from gapwise.storage.backend import Location

ENDING = "model"


def write(model: Model, target: Location, run: Location) -> None:
    """Write the folder; what is there and no model is refused."""
    model.save(target)
