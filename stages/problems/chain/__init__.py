"""Chains: linear sequences with pairwise transitions and a Viterbi oracle."""

from stages.problems.chain.chain import Chain, build
from stages.problems.chain.features import derived
from stages.problems.chain.metrics import metrics

__all__ = ["Chain", "build", "derived", "metrics"]
