"""Matchings: bipartite word alignments, exact by shortest augmenting paths."""

from gapwise.stages.problems.matching.matching import Matching, build, derived
from gapwise.stages.problems.matching.metrics import metrics

__all__ = ["Matching", "build", "derived", "metrics"]
