"""Matchings: bipartite word alignments, exact by shortest augmenting paths."""

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.matching.matching import Matching, build, derived
from gapwise.stages.problems.matching.metrics import metrics

CAPABILITIES = Capabilities(
    learns="align the words of sentences",
    losses={"": "the cost of missed and of wrong links between the two sentences"},
    features=("x",),
    single=True,
    rising=("precision", "recall"),
    falling=("aer",),
)

__all__ = ["CAPABILITIES", "Matching", "build", "derived", "metrics"]
