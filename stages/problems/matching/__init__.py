"""Matchings: bipartite word alignments, exact by shortest augmenting paths."""

from stages.problems.matching.matching import Matching, build, derived
from stages.problems.matching.metrics import metrics

__all__ = ["Matching", "build", "derived", "metrics"]
