"""One .npz file for other programs: the arrays ``weights`` and ``shared_<name>``, and all facts as JSON in ``facts``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gapwise.stages.model.model import Model
from gapwise.storage.backend import Location
from gapwise.storage.files import aside, make_directory, publish
from gapwise.storage.models import check_written

ENDING = "npz"


def write(model: Model, target: Location, run: Location) -> None:
    """Write the file; ``json.loads(bytes(found["facts"]))`` has the facts."""
    if target.exists() and not target.is_file():
        raise ValueError(f"{target}: is a folder; give a file")
    facts = np.frombuffer(json.dumps(model.facts).encode(), np.uint8)
    arrays: dict[str, Any] = {"weights": model.weights, "facts": facts}
    arrays |= {f"shared_{name}": array for name, array in model.shared.items()}
    make_directory(target.parent)
    try:
        with aside(target).open("wb") as file:
            np.savez_compressed(file, **arrays)
        with aside(target).open("rb") as stream, np.load(stream) as written:
            check_written(written["weights"], model.weights, target)
        publish(target)
    finally:
        aside(target).unlink(missing_ok=True)
