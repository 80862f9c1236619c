"""Optional abilities of structures, as data; only this file looks for them.

`Capabilities` is of a structure's module, which holds one as ``CAPABILITIES``. `Traits` are of a problem: its class has
optional methods and properties (`protocol`), and `traits_of` lists which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gapwise.records import Facts

if TYPE_CHECKING:
    import numpy as np

    from gapwise.stages.problems.loss_unit import LossUnit

Block = Mapping[str, "np.ndarray"]
Arrays = dict[str, "np.ndarray"]

EXACT, UPPER_BOUNDED, ESTIMATE = "exact", "upper-bounded", "estimate"
"""The kinds of gap (`certainty`)."""


@dataclass(frozen=True)
class Capabilities:
    """The optional parts of a structure's module.

    Parameters
    ----------
    calls_python : bool
        Whether its oracle is Python code, which holds the GIL: threads then gain nothing.
    margins : bool
        Whether it knows the best labelling through each label of each entry (`protocol.Scored`).
    n_best : bool
        Whether it lists its best labellings, too (`protocol.Ranked`).
    whole : tuple of str
        Arrays with a row a block that readers write at once.
    rows : tuple of str
        Arrays of rows of different lengths that readers write at once: the pointer's name, then those that it divides.
    features : tuple of str
        Arrays that hold features, whose sizes are checked (`scale`).
    mapped : tuple of str
        Arrays with a ``<name>_ptr`` that `build` passes on as they are, and only compiled methods read, of their block.
    single : bool
        Whether features, or their inner products, are kept as float32.
    counts : tuple of str
        Facts of the features that are numbers of things with weights of their own, so from 1 to d.
    rising, falling : tuple of str
        Measures that the module's `metrics` may return, of which more or less is better.
    unit : LossUnit, optional
        If a loss is counted in a mean over the training blocks: in which.
    confusion : function (problem, arrays, meta, predictions) -> (names, matrix), optional
        If single labels mean something: their names, and float64 (labels, labels), how many tokens, pixels or examples of
        each true label (row) are predicted as which.
    split_names : tuple of str
        Arrays of bytes that name the split; where splits are joined, each name is on a line.
    for_training : function (block) -> block, optional
        If a training block differs from the same block in a test split: what to store of it.
    stand_ins : function (**block) -> arrays, optional
        If `derived` takes long or much memory: arrays of the same names, as small as can be, for blocks that are only
        decoded. The problem then has the property `decodes_only` (`Traits`).
    decoded : function (arrays, meta, w) -> (labels, label_ptr), optional
        If blocks can be decoded without their truth and without a compiler.
    """

    calls_python: bool = False
    margins: bool = False
    n_best: bool = False
    whole: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    split_names: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    single: bool = False
    counts: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    unit: LossUnit | None = None
    confusion: Callable[[Any, Block, Facts, np.ndarray], tuple[list[str], np.ndarray]] | None = None
    for_training: Callable[[Block], Arrays] | None = None
    stand_ins: Callable[..., Arrays] | None = None
    decoded: Callable[[Block, Facts, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None


FORMER = {
    "calls_python": "calls_python", "WHOLE": "whole", "ROWS": "rows", "confusion": "confusion",
    "for_training": "for_training", "stand_ins": "stand_ins", "decoded": "decoded",
}  # fmt: skip
"""Former names in a structure's module, and the fields that replace them."""


def capabilities_of(module: ModuleType) -> Capabilities:
    """``CAPABILITIES`` of a structure's module; the default if it has none. ValueError for a module of an old form."""
    record = vars(module).get("CAPABILITIES")
    if isinstance(record, Capabilities):
        return record
    former = [name for name in FORMER if name in vars(module)]
    if former or record is not None:
        given = ", ".join(f"{FORMER[name]}={name}" for name in former)
        raise ValueError(
            f"{module.__name__}: what a structure can do is a record now; expected CAPABILITIES = Capabilities({given}) "
            "of gapwise.stages.problems.capabilities"
        )
    return Capabilities()


def calls_python_of(problem: object) -> bool:
    """Whether a problem's oracle is Python code, as the module of its class says."""
    module = sys.modules.get(type(problem).__module__)
    record = None if module is None else vars(module).get("CAPABILITIES")
    return isinstance(record, Capabilities) and record.calls_python


@dataclass(frozen=True)
class Traits:
    """What a problem's class has beyond `protocol.Problem`.

    Parameters
    ----------
    features_per_block : float
        Mean number of features that `scores` reads of a block (`stages.solver.margins`); 0 if that is not told.
    decodes_only : bool
        Whether its blocks lack what solving and verifying read (`Capabilities.stand_ins`).
    own_metric : bool
        Whether it has the method ``inner(a, b)``: numbers represent weights otherwise than one by one (`metric`).
    marginals : bool
        Whether it has the method `marginals` (`protocol.Summable`).
    margins : bool
        Whether it has the methods `max_marginals` and `ranked_scratch` (`protocol.Scored`).
    n_best : bool
        Whether it has the method `n_best`, too (`protocol.Ranked`).
    lists : bool
        Whether its max-oracle returns several labellings, `max_oracles` (`protocol.Listing`).
    forbidden : function (block, label, label_offset) -> bool array, optional
        Which of some rows of labels are no labellings (`protocol.Problem`).
    measures : function (predictions) -> dict, optional
        The usual measures of the task, of a user's own structure (`python_structure`).
    block_weight : float64 array (n,), optional
        What scores and losses of a block are multiplied with (`block_weight`).
    """

    features_per_block: float = 0.0
    decodes_only: bool = False
    own_metric: bool = False
    marginals: bool = False
    margins: bool = False
    n_best: bool = False
    lists: bool = False
    forbidden: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None
    measures: Callable[[np.ndarray], Mapping[str, float]] | None = None
    block_weight: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True)
class OracleFacts:
    """What a problem's max-oracle finds (`certainty`).

    Parameters
    ----------
    certainty : str
        EXACT, UPPER_BOUNDED or ESTIMATE; EXACT unless the class has that property (`protocol.Bounded`).
    accuracy : float, optional
        The multiplicative accuracy that an oracle declares whose gaps are an ESTIMATE.
    """

    certainty: str = EXACT
    accuracy: float | None = None


def oracle_facts(problem: object) -> OracleFacts:
    """The record of a problem, whose class a user may have written; loads an oracle in Python that was not loaded."""
    certainty = str(getattr(problem, "certainty", EXACT))
    accuracy = getattr(problem, "accuracy", None) if certainty == ESTIMATE else None
    return OracleFacts(certainty, None if accuracy is None else float(accuracy))


def declared_operations(problem: object) -> tuple[float, float] | None:
    """What a problem's class declares of its costs (`operations.Operations`); None without that property."""
    return getattr(problem, "operations", None)


def traits_of(problem: object) -> Traits:
    """The record of a problem: which optional methods and properties its class has, which a user may have written. Calls no
    oracle."""
    return Traits(
        features_per_block=float(getattr(problem, "features_per_block", 0.0)),
        decodes_only=bool(getattr(problem, "decodes_only", False)),
        own_metric=hasattr(problem, "inner"),
        marginals=hasattr(problem, "marginals"),
        margins=hasattr(problem, "max_marginals"),
        n_best=hasattr(problem, "n_best"),
        lists=bool(getattr(problem, "lists", hasattr(problem, "max_oracles"))),
        forbidden=getattr(problem, "forbidden", None),
        measures=getattr(problem, "measures", None),
        block_weight=getattr(problem, "block_weight", None),
    )
