"""Multiclass classification over dense rows, sparse rows or a kernel."""

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.multiclass.multiclass import Multiclass, build, confusion, derived, metrics

CAPABILITIES = Capabilities(
    learns="tell classes apart",
    losses={"": "1 for a wrong class, 0 for the right one"},
    margins=True,
    n_best=True,
    whole=("x", "labels", "row", "block_weight"),
    rows=("row_ptr", "ids", "values"),
    features=("x", "values"),
    counts=("classes",),
    falling=("error_rate",),
    confusion=confusion,
)

__all__ = ["CAPABILITIES", "Multiclass", "build", "derived", "metrics"]
