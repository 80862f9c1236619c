"""Chains: linear sequences with pairwise transitions and a Viterbi oracle."""

from gapwise.stages.problems.capabilities import Capabilities
from gapwise.stages.problems.chain.building import build
from gapwise.stages.problems.chain.chain import Chain
from gapwise.stages.problems.chain.dense import Dense
from gapwise.stages.problems.chain.features import derived, stand_ins
from gapwise.stages.problems.chain.metrics import confusion, metrics
from gapwise.stages.problems.chain.sparse import Sparse
from gapwise.stages.problems.losses import IN_WORDS, LOSSES

CAPABILITIES = Capabilities(
    learns="label sequences",
    losses={name: IN_WORDS[name] for name in LOSSES},
    new_data="new.txt",
    margins=True,
    n_best=True,
    whole=("block_weight",),
    features=("values",),
    single=True,
    counts=("classes", "attributes"),
    rising=("chunk_precision", "chunk_recall", "chunk_f1"),
    falling=("token_error", "sequence_error"),
    confusion=confusion,
    stand_ins=stand_ins,
)

__all__ = ["CAPABILITIES", "Chain", "Dense", "Sparse", "build", "derived", "metrics"]
