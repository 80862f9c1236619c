"""Chains: linear sequences with pairwise transitions and a Viterbi oracle."""

from gapwise.stages.problems.chain.chain import Chain, build
from gapwise.stages.problems.chain.features import derived, stand_ins
from gapwise.stages.problems.chain.metrics import confusion, metrics

MARGINALS = True

__all__ = ["MARGINALS", "Chain", "build", "confusion", "derived", "metrics", "stand_ins"]
