"""A run as its figures and its report read it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.certify.verdict import Verdict, read_verdict
from gapwise.stages.problems.chain.metrics import decode_names
from gapwise.stages.solver.path.rule import PathRule
from gapwise.stages.solver.path.rules import path_rule
from gapwise.storage.backend import Location
from gapwise.storage.features import Features
from gapwise.storage.files import read_json
from gapwise.storage.format import model_folder
from gapwise.storage.results import read_path, read_trace

LARGE = ("weights", "block_gap", "support_", "label_offset")
"""Prefixes of the names of those arrays of a path.zarr that grow with features, blocks or atoms."""


def read_numbers(run_dir: Location) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) of a path.zarr: the arrays with one number per breakpoint or evaluated lambda, and the cells."""
    return read_path(run_dir / "path.zarr", lambda name: not name.startswith(LARGE))


class StoredRun:
    """A run that is solved, each part read when it is first asked for; what a later stage will write is empty.

    Attributes
    ----------
    run_dir : Path or UrlPath
        The run directory.
    features : Features or None
        Those of the run; without them `meta` and `test_blocks` are empty.
    """

    def __init__(self, run_dir: Location, features: Features | None):
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
    def manifest(self) -> Record:
        """Facts about the run: its name, command, settings and stages."""
        return self._record("manifest.json")

    @cached_property
    def verified(self) -> Record:
        """What separate code found when it recomputed the certificates."""
        return self._record("verify.json")

    @cached_property
    def measured(self) -> Record:
        """What evaluation found."""
        return self._record("metrics.json")

    @cached_property
    def refitted(self) -> Record:
        """The numbers of the model that was solved on all training blocks; {} if there is none."""
        return self._record("refit/metrics.json")

    def _record(self, name: str) -> Record:
        """A JSON file of the run; {} if it is missing."""
        file = self.run_dir / name
        content = read_json(file) if file.is_file() else {}
        return content if isinstance(content, dict) else {}

    @property
    def meta(self) -> Facts:
        """Facts of the features."""
        return {} if self.features is None else self.features.meta

    @cached_property
    def test_blocks(self) -> dict[str, np.ndarray]:
        """Arrays of the test split's features."""
        return {} if self.features is None else dict(self.features.arrays("test"))

    @property
    def structure(self) -> str:
        """Of the problem; empty without features."""
        return str(self.meta.get("structure", ""))

    @cached_property
    def label_names(self) -> list[str]:
        """Names of the labels, in the order of their numbers; [] for labels without names."""
        if "label_names" in self.test_blocks:
            return decode_names(self.test_blocks["label_names"])
        return [str(name) for name in self.meta.get("class_names", self.meta.get("label_names")) or ()]

    def label(self, k: int) -> str:
        """The name of label `k`, or its number."""
        return self.label_names[k] if k < len(self.label_names) else str(k)

    @cached_property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """True labels of the test split, flat, and where each block begins."""
        labels = np.asarray(self.test_blocks["labels"]).reshape(-1)
        pointer = self.test_blocks.get("labels_ptr")
        return labels, np.arange(labels.size + 1) if pointer is None else np.asarray(pointer)

    @property
    def served(self) -> Location:
        """The folder of the model that leaves home."""
        return model_folder(self.run_dir)

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

    @property
    def predicting(self) -> str:
        """The model whose predictions are shown, in words: the refitted one, where there is one."""
        if not self.refitted:
            return "by the model of the best λ"
        return f"by the model that was trained again on all examples, at λ = {float(self.refitted['lambda']):.3g}"

    def some_lambdas(self, most: int) -> list[float]:
        """At most `most` of the solved lambdas, falling, evenly spaced; the best one is among them."""
        lams = np.unique(self.arrays["lambda"])[::-1]
        if lams.size > most:
            lams = lams[np.linspace(0, lams.size - 1, most).round().astype(int)]
        if (best := self.measured.get("best_lambda")) is not None and best not in lams:
            if lams.size < most:
                lams = np.append(lams, best)
            else:
                lams[1 + int(np.argmin(np.abs(np.log(lams[1:-1] / best))))] = best
        return sorted((float(lam) for lam in lams), reverse=True)
