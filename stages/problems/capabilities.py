"""Optional abilities of structures; only this file looks for them.

`Capabilities` is of a structure's module, which holds one as ``CAPABILITIES``. A problem's class may have the attributes and
methods of `OPTIONAL`.

One of these is what a duality gap is worth, its *certainty*, which depends on the max-oracle that the hinges come from:

* EXACT: the oracle finds every maximum;
* UPPER_BOUNDED: the oracle is approximate, and the structure bounds each maximum from above (`protocol.Bounded`). The gap
  is that of the bounds, so it certifies as much as an exact one, whatever the oracle returned;
* ESTIMATE: the oracle is approximate without a bound, or the gap rests on stale numbers: it may be too small.

An approximate oracle has the *multiplicative accuracy* nu in (0, 1] if the block gap that its answer shows is always at
least nu times the true one (LJ13 4). A true gap is then at most 1 / nu times its estimate, and LJ13's bounds on the steps of
BCFW hold times 1 / nu^2. Running the oracle cannot prove nu. So it is shown as what the oracle declares, and gaps stay
estimates.
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

    from gapwise.stages.problems.losses import LossUnit

Block = Mapping[str, "np.ndarray"]
Arrays = dict[str, "np.ndarray"]

EXACT, UPPER_BOUNDED, ESTIMATE = "exact", "upper-bounded", "estimate"
"""The kinds of gap."""


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
    learns : str
        What its models learn, as the end of "a structured SVM learned to ...".
    losses : mapping of str to str
        What the loss of one example is, by the name that the features' fact `loss` may have; the first is the usual one.
    new_data : str
        What new data to predict are usually called.
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
        decoded.
    decoded : function (arrays, meta, w) -> (labels, label_ptr), optional
        If blocks can be decoded without their truth and without a compiler.
    """

    learns: str = "predict structured objects"
    losses: Mapping[str, str] = field(default_factory=dict)
    new_data: str = "NEW_DATA"
    calls_python: bool = False
    margins: bool = False
    n_best: bool = False
    whole: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    split_names: tuple[str, ...] = ()
    single: bool = False
    counts: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    unit: LossUnit | None = None
    confusion: Callable[[Any, Block, Facts, np.ndarray], tuple[list[str], np.ndarray]] | None = None
    for_training: Callable[[Block], Arrays] | None = None
    stand_ins: Callable[..., Arrays] | None = None
    decoded: Callable[[Block, Facts, np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None


def capabilities_of(module: ModuleType) -> Capabilities:
    """``CAPABILITIES`` of a structure's module; the default if it has none."""
    record = vars(module).get("CAPABILITIES", Capabilities())
    if not isinstance(record, Capabilities):
        raise ValueError(f"{module.__name__}: CAPABILITIES must be a gapwise.stages.problems.capabilities.Capabilities")
    return record


def calls_python_of(problem: object) -> bool:
    """Whether a problem's oracle is Python code, as the module of its class says."""
    module = sys.modules.get(type(problem).__module__)
    record = None if module is None else vars(module).get("CAPABILITIES")
    return isinstance(record, Capabilities) and record.calls_python


OPTIONAL: Mapping[str, Any] = {
    "features_per_block": 0.0,  # mean number of features that `scores` reads of a block (`stages.solver.block.by_margins`)
    "decodes_only": False,  # whether a true label is none of those that training knows
    "lists": True,  # False if it has `max_oracles`, but not for this problem
    "certainty": EXACT,  # of its gaps: EXACT, UPPER_BOUNDED or ESTIMATE
    "accuracy": None,  # the multiplicative accuracy of an oracle whose gaps are an ESTIMATE
    "oracle_cost": 1.0,  # of a call and of what reads the weights for it, in visits that call no oracle (`methods.mpbcfw`)
    "block_weight": None,  # float64 (n,): what scores and losses of a block are multiplied with (`losses.block_weights`)
    "inner": None,  # inner(a, b): numbers represent weights otherwise than one by one (`moves.inner`)
    "marginals": None,  # sums over all labellings (`protocol.Summable`)
    "max_marginals": None,  # the best labelling through each label (`protocol.Scored`)
    "n_best": None,  # its best labellings (`protocol.Ranked`)
    "max_oracles": None,  # several labellings an oracle call (`protocol.Listing`)
    "unconstrained": False,  # whether every row of labels is a labelling; verify then compares with those of other blocks
    "forbidden": None,  # forbidden(block, label, label_offset): which stored rows of labels are no labellings (`stored`)
    "measures": None,  # measures(predictions): the usual ones, of a user's own structure (`python_structure`)
}
"""What a problem's class may have beyond `protocol.Problem`, and what stands for an attribute or method that it lacks."""


def optional_of(problem: object, name: str) -> Any:
    """An attribute or method of `OPTIONAL` of a problem, whose class a user may have written. Calls no oracle."""
    return getattr(problem, name, OPTIONAL[name])


def lists_several(problem: object) -> bool:
    """Whether the max-oracle of a problem returns several labellings."""
    return optional_of(problem, "max_oracles") is not None and bool(optional_of(problem, "lists"))


def certainty_of(problem: object) -> str:
    """What the gaps of this problem are; structures without the attribute `certainty` are EXACT."""
    return str(optional_of(problem, "certainty"))


def certainty_told(attrs: Mapping[str, Any]) -> str:
    """What the attributes of a stored trace or path say of its gaps; EXACT where they are silent."""
    return str(attrs.get("certainty", EXACT))


def accuracy_of(problem: object) -> float | None:
    """The multiplicative accuracy that the oracle of this problem declares; None if it declares none."""
    accuracy = optional_of(problem, "accuracy") if certainty_of(problem) == ESTIMATE else None
    return None if accuracy is None else float(accuracy)


def is_accuracy(value: object) -> bool:
    """Whether `value` is a number in (0, 1], as a multiplicative accuracy has to be."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value <= 1.0


def promise(accuracy: float) -> str:
    """What LJ13's theorem promises for an oracle of this multiplicative accuracy."""
    return (
        f"with the multiplicative accuracy {accuracy:g} that the oracle declares, a gap is at most {1.0 / accuracy:.4g} "
        f"times its estimate and BCFW takes at most {1.0 / accuracy**2:.4g} times the steps (LJ13 section 4)"
    )
