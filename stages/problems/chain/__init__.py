"""Chains: linear sequences with pairwise transitions and a Viterbi oracle."""

from stages.problems.chain.chain import Chain, build
from stages.problems.chain.features import derived, stand_ins
from stages.problems.chain.metrics import confusion, metrics

MARGINALS = True

__all__ = ["MARGINALS", "Chain", "build", "confusion", "derived", "metrics", "stand_ins"]
