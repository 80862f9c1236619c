"""Losses and constraints of `ChainSVM`, from its plain parameters to the tables and facts of the structure `chain`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from gapwise.pipeline.estimators.choices import is_number, refuse
from gapwise.records import Record
from gapwise.stages.datasets.arrays.rows import Label
from gapwise.stages.datasets.text.constraints import SCHEMES, Pair, fault, scheme, table_of
from gapwise.stages.problems.losses import BALANCED, LOSSES, PER_SEQUENCE, PER_TOKEN

LabelWeights: TypeAlias = str | Mapping[Label, float] | None
Constraints: TypeAlias = str | Iterable[Pair] | None


@dataclass(frozen=True)
class TokenLosses:
    """Loss and constraints over the sorted `names` of all labels."""

    names: Sequence[Label]
    loss: str
    balanced: bool
    cost: np.ndarray | None
    """(K, K)"""
    forbidden: np.ndarray | None
    """(K + 2, K)"""
    constraints: Constraints

    def refuse_truths(self, labels: np.ndarray, start: np.ndarray) -> None:
        """Raise ValueError if true labels, numbers of `names`, break the constraints; sequence i begins at start[i]."""
        fault_at = None if self.forbidden is None else fault(self.forbidden, self.names, labels, start)
        if fault_at is not None:
            sequence, token, what = fault_at
            asked = repr(self.constraints) if isinstance(self.constraints, str) else "the given pairs"
            raise ValueError(f"y: sequence {sequence}, token {token}: the label {what}, by constraints={asked}")

    def arrays(self, known: np.ndarray) -> dict[str, np.ndarray]:
        """The tables over the labels `known`, numbers of `names`."""
        K, tables = len(self.names), {}
        if self.cost is not None:
            tables["cost"] = self.cost[np.ix_(known, known)]
        if self.forbidden is not None:
            tables["forbidden"] = self.forbidden[np.ix_(np.append(known, [K, K + 1]), known)]
        return tables

    def facts(self, counts: np.ndarray, n: int) -> Record:
        """The facts of a problem with n training blocks and `counts` tokens of each label."""
        facts: Record = {} if self.loss == PER_SEQUENCE else {"loss": self.loss}
        if self.balanced:
            facts["balanced"] = True
        return {**facts, "label_counts": counts.tolist(), "n_train": n} if facts else {}


def token_losses(
    names: Sequence[Label],
    loss: str,
    label_weights: LabelWeights,
    costs: npt.ArrayLike | None,
    constraints: Constraints,
) -> TokenLosses:
    """Check the parameters of `ChainSVM`; ValueError names the one that cannot be used, and lists the choices."""
    if loss not in LOSSES:
        raise refuse("loss", loss, f"{PER_TOKEN!r} or {PER_SEQUENCE!r}")
    cost = cost_matrix(costs, names)
    balanced, factors = label_factors(label_weights, names)
    if factors is not None:
        cost = (1.0 - np.eye(len(names)) if cost is None else cost) * factors[:, None]
    return TokenLosses(names, loss, balanced, cost, _forbidden(constraints, names), constraints)


def cost_matrix(costs: npt.ArrayLike | None, names: Sequence[Label]) -> np.ndarray | None:
    """float64 (K, K) over `names`, or None; ValueError if it is no cost matrix."""
    if costs is None:
        return None
    cost, K = np.asarray(costs, dtype=float), len(names)
    if cost.shape != (K, K) or np.diag(cost).any() or not (np.isfinite(cost) & (cost >= 0)).all():
        raise ValueError(f"costs: expected ({K}, {K}) numbers >= 0 with a zero diagonal, got {cost.tolist()}")
    return cost


def label_factors(label_weights: LabelWeights, names: Sequence[Label]) -> tuple[bool, np.ndarray | None]:
    """Whether weights are balanced, and the factors (K,) of a table; ValueError names a wrong entry."""
    if label_weights is None or (isinstance(label_weights, str) and label_weights == BALANCED):
        return label_weights is not None, None
    if not isinstance(label_weights, Mapping):
        raise refuse("label_weights", label_weights, f"{BALANCED!r}, a dict from labels to weights, or None")
    for name, weight in label_weights.items():
        if name not in names:
            known = ", ".join(map(repr, names))
            raise ValueError(f"label_weights: the label {name!r} does not occur in y; known: {known}")
        if not is_number(weight) or not 0 <= weight < np.inf:
            raise refuse(f"label_weights[{name!r}]", weight, "a number >= 0")
    return False, np.array([float(label_weights.get(name, 1.0)) for name in names])


def _forbidden(constraints: Constraints, names: Sequence[Label]) -> np.ndarray | None:
    if constraints is None or (isinstance(constraints, str) and constraints == "none"):
        return None
    choices = f"{', '.join(map(repr, SCHEMES))}, None, or pairs (label, label that may not come right after it)"
    if isinstance(constraints, str):
        if constraints not in SCHEMES:
            raise refuse("constraints", constraints, choices)
        return scheme(constraints, names)
    try:
        return table_of([(before, after) for before, after in constraints], names)
    except TypeError as error:
        raise refuse("constraints", constraints, choices) from error
    except ValueError as error:
        raise ValueError(f"constraints: {error}; expected {choices}") from error
