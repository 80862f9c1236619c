"""What counts as an error in sequences, and which labellings there are: options that all readers of sequences share.

``loss``: ``per_token``, each wrong token costs 1 / (mean tokens of a training sequence), or ``per_sequence``, 1 / (tokens
of its own). ``label_weights``: factors of the cost of tokens by their true label, ``balanced`` (inverse to how often the
label occurs in training), or a table ``{B-NP: 2, O: 0.5}``; others weigh 1.
``costs``: a file with the cost of predicting b where a is true (`read_costs`). ``constraints``: ``none``, a scheme
(``bio``, ``iob1``, ``iobes``, ``bilou``), or a file of what may not occur (`text.constraints`).

All four are in `OPTIONS`, which readers leave out of their keys: `Task.source` has what differs from the papers' loss
without constraints, and `Task.files` the files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gapwise.records import Record
from gapwise.stages.datasets import DataError, OptionError, Sink
from gapwise.stages.datasets.arrays.csv_rows import read_costs
from gapwise.stages.datasets.common.options import Values, one_of
from gapwise.stages.datasets.text.constraints import SCHEMES, fault, fitting, read_constraints, scheme
from gapwise.stages.problems.losses import BALANCED, LOSSES, PER_SEQUENCE, PER_TOKEN

OPTIONS = ("loss", "label_weights", "costs", "constraints")
NONE = "none"
CONSTRAINTS = ", ".join((NONE, *SCHEMES))
WEIGHTS = Values("a table of labels and their weights, as {O: 0.5}")


@dataclass(frozen=True)
class Task:
    """The four options, checked; a path where a file was given."""

    loss: Annotated[str, one_of(*LOSSES)] = PER_SEQUENCE
    label_weights: Annotated[str, one_of(BALANCED)] | Annotated[dict[str, Any], WEIGHTS] | None = None
    costs: Path | None = None
    constraints: Annotated[str, one_of(NONE, *SCHEMES)] | Path = NONE

    def __post_init__(self) -> None:
        for name, weight in self.label_weights.items() if isinstance(self.label_weights, Mapping) else ():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
                raise OptionError(f"dataset.label_weights: {name}: expected a number >= 0, got {weight!r}")
        for option, expected in (("costs", "a file"), ("constraints", f"{CONSTRAINTS} or a file")):
            given = getattr(self, option)
            if isinstance(given, Path) and not given.is_file():
                raise OptionError(f"dataset.{option}: expected {expected}; there is no file {given}")

    def files(self) -> dict[str, Path]:
        """The files among them, by option."""
        return {name: value for name in OPTIONS if isinstance(value := getattr(self, name), Path)}

    def source(self) -> Record:
        """What else the features depend on; nothing for the papers' loss without constraints."""
        given = {name: value for name in OPTIONS if (value := getattr(self, name)) != getattr(PAPERS, name)}
        return {name: value for name, value in given.items() if not isinstance(value, Path)}

    def write(self, sink: Sink, names: Sequence[str], truth: np.ndarray) -> Record:
        """Put the tables over labels `names`, those of training, into `sink`; returns the facts that chains need.

        `truth` (tokens,) holds the labels of all training sequences; featurize leaves out those that it holds out.
        """
        cost = None if self.costs is None else read_costs(self.costs, names)
        if isinstance(self.label_weights, Mapping):
            cost = (1.0 - np.eye(len(names)) if cost is None else cost) * self._weights(names)[:, None]
        if cost is not None:
            sink.put("", "cost", cost)
        table = self._forbidden(names)
        if table is not None:
            sink.put("", "forbidden", table)
        facts: Record = {} if self.loss == PER_SEQUENCE else {"loss": self.loss}
        if self.label_weights == BALANCED:
            facts["balanced"] = True
        return {**facts, "label_counts": np.bincount(truth, minlength=len(names)).tolist()} if facts else {}

    def check(self, names: Sequence[str], known: int, labels: np.ndarray, ptr: np.ndarray,
              where: Callable[[int, int], str]) -> None:  # fmt: skip
        """Raise DataError if a truth breaks the constraints. The first `known` of `names` occur in training; ``where(i, t)``
        begins the message about token t of sequence i."""
        table = self._forbidden(names[:known])
        broken = None if table is None else fault(table, names, labels, ptr)
        if broken is not None:
            i, t, what = broken
            raise DataError(
                f"{where(i, t)}: the true label {what}, by dataset.constraints={self.constraints}; correct the data, "
                f"leave the constraint out{fitting(names[:known], labels, ptr)}"
            )

    def _forbidden(self, names: Sequence[str]) -> np.ndarray | None:
        if isinstance(self.constraints, Path):
            return read_constraints(self.constraints, names)
        if self.constraints == NONE:
            return None
        try:
            return scheme(self.constraints, names)
        except ValueError as error:
            raise OptionError(f"dataset.{error}; expected {CONSTRAINTS} or a file") from error

    def _weights(self, names: Sequence[str]) -> np.ndarray:
        """Factors (K,) of a table."""
        assert isinstance(self.label_weights, Mapping)
        weights = {str(name): float(weight) for name, weight in self.label_weights.items()}
        unknown = [name for name in weights if name not in names]
        if unknown:
            known = f"known: {', '.join(names)}"
            raise OptionError(f"dataset.label_weights: the label {unknown[0]!r} never occurs in training; {known}")
        return np.array([weights.get(name, 1.0) for name in names])


PAPERS = Task()
"""The loss of the papers, without constraints."""


@dataclass(frozen=True)
class TokenTask(Task):
    """The same where each token counts alike unless `loss` says otherwise."""

    loss: Annotated[str, one_of(*LOSSES)] = PER_TOKEN
