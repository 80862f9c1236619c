"""What a report reads from a run, each part when a section first asks for it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from gapwise.records import Record
from gapwise.stages.problems.chain.metrics import decode_names
from gapwise.stages.reports.stored import StoredRun
from gapwise.storage.backend import Location
from gapwise.storage.features import Features


class ReportedRun(StoredRun):
    """A run with its records. Whatever a later stage would have written is empty before that stage has run."""

    def __init__(self, run_dir: Location, features: Features | None):
        super().__init__(run_dir, features)  # type: ignore[arg-type]
        self.has_features = features is not None

    @property
    def name(self) -> str:
        return str(self.manifest.get("name", self.run_dir.name))

    @cached_property
    def manifest(self) -> Record:
        return self._record("manifest.json")

    @cached_property
    def verified(self) -> Record:
        return self._record("verify.json")

    @cached_property
    def refitted(self) -> Record:
        """The numbers of the model that was solved on all training blocks; {} if there is none."""
        return self._record("refit/metrics.json")

    @property
    def predicting(self) -> str:
        """The model whose predictions are shown, in words: the refitted one, where there is one."""
        if not self.refitted:
            return "by the model of the best λ"
        return f"by the model that was trained again on all examples, at λ = {float(self.refitted['lambda']):.3g}"

    @property
    def science(self) -> Record:
        """The settings of the run, by group of the configuration."""
        return dict(self.manifest.get("science", {}))

    @property
    def dataset(self) -> str:
        return str(self.science.get("dataset", {}).get("name", "the data"))

    @property
    def structure(self) -> str:
        """Of the problem; empty if the features are not there."""
        return str(self.features.meta.get("structure", "")) if self.has_features else ""

    @cached_property
    def label_names(self) -> list[str]:
        """Names of the labels, in the order of their numbers; [] for labels without names."""
        if not self.has_features:
            return []
        if "label_names" in self.test_blocks:
            return decode_names(self.test_blocks["label_names"])
        meta = self.features.meta
        return [str(name) for name in meta.get("class_names", meta.get("label_names")) or ()]

    def label(self, k: int) -> str:
        """The name of label `k`, or its number."""
        return self.label_names[k] if k < len(self.label_names) else str(k)

    @cached_property
    def truth(self) -> tuple[np.ndarray, np.ndarray]:
        """True labels of the test split, flat, and where each block begins."""
        blocks = self.test_blocks
        labels = np.asarray(blocks["labels"]).reshape(-1)
        pointer = blocks.get("labels_ptr")
        return labels, np.arange(labels.size + 1) if pointer is None else np.asarray(pointer)
