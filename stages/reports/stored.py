"""What charts and figures read from a run."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gapwise.records import Record
from gapwise.stages.certify.verdict import Verdict, read_verdict
from gapwise.stages.solver.path.rule import PathRule
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.features import Features
from gapwise.storage.files import read_json
from gapwise.storage.results import read_path, read_trace
from gapwise.storage.served import served_at

LARGE = ("weights", "block_gap", "support_", "label_offset")
"""Prefixes of the names of those arrays of a path.zarr that grow with features, blocks or atoms."""


def read_numbers(run_dir: Location) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) of a path.zarr: the arrays with one number per breakpoint or evaluated lambda, and the cells."""
    return read_path(run_dir / "path.zarr", lambda name: not name.startswith(LARGE))


class StoredRun:
    """A finished run and its features, each part read when a figure first asks for it.

    Attributes
    ----------
    run_dir : Path or UrlPath
        The run directory.
    """

    def __init__(self, run_dir: Location, features: Features):
        self.run_dir, self.features = run_dir, features

    @property
    def can(self) -> type[PathRule]:
        """What the rule of its path can do."""
        return path_rule(str(self.attrs["rule"]))

    @cached_property
    def trace(self) -> dict[str, np.ndarray]:
        """Columns of trace.zarr; {} if the file is missing."""
        return read_trace(self.run_dir) if (self.run_dir / "trace.zarr").is_dir() else {}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """One number per breakpoint, and more: see `read_numbers`."""
        return self._numbers[0]

    @property
    def attrs(self) -> Record:
        """Attributes of the path."""
        return self._numbers[1]

    @cached_property
    def _numbers(self) -> tuple[dict[str, np.ndarray], Record]:
        return read_numbers(self.run_dir)

    @cached_property
    def verdict(self) -> Verdict:
        """What the path proves; before it is verified, what it says of itself."""
        return read_verdict(self.run_dir, self.arrays, self.attrs)

    @cached_property
    def measured(self) -> Record:
        """What evaluation found; {} before it."""
        return self._record("metrics.json")

    def _record(self, name: str) -> Record:
        """A JSON file of the run; {} if it is missing."""
        file = self.run_dir / name
        content = read_json(file) if file.is_file() else {}
        return content if isinstance(content, dict) else {}

    @cached_property
    def test_blocks(self) -> dict[str, np.ndarray]:
        """Arrays of the test split's features."""
        return dict(self.features.arrays("test"))

    @property
    def served(self) -> Location:
        """The folder of the model that leaves home."""
        return served_at(self.run_dir)

    @cached_property
    def predictions(self) -> dict[str, np.ndarray]:
        """Flat predicted labels of the test split, and `label_ptr`, where each block begins; {} if nothing was predicted.

        They are those of the model that leaves home: of a refit, if there is one.
        """
        file = self.served / "predictions.npz"
        if not file.is_file():
            return {}
        with file.open("rb") as stream, np.load(stream) as arrays:
            return dict(arrays)
