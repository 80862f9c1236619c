"""Builds chain problems from the arrays of a split, with sparse rows or with a matrix of tokens, and checks these arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gapwise.records import Facts
from gapwise.stages.problems.chain.chain import Chain
from gapwise.stages.problems.chain.costs import blocked_scores, cost_table, refuse_lengths, units_of
from gapwise.stages.problems.chain.dense import Dense
from gapwise.stages.problems.chain.sparse import Sparse
from gapwise.stages.problems.losses import block_weights
from gapwise.stages.problems.protocol import frozen


def build(arrays: Mapping[str, np.ndarray], meta: Facts) -> Chain:
    """Chain problem of one split.

    Parameters
    ----------
    arrays
        ``labels`` (tokens,) with ``labels_ptr`` (n + 1,): label ids, one block after the other. ``counts`` (tokens,)
        and ``ids`` (sum of counts,): attributes of each token, biases included. Optional: ``values``, shaped like ids,
        if not all are 1; ``gram`` with ``gram_ptr``, empty if the blocks are only to be decoded, otherwise computed here;
        ``decode_only`` (any array) allows labels >= K. Also optional: what `chain.costs` reads, ``cost`` and
        ``block_weight`` (n,), and ``forbidden`` (K + 2, K), not 0 where label b may not follow a, be the first (row K) or
        the last one (row K + 1). Without ``ids``, ``values`` is a matrix (rows, p), biases not included, and ``first``
        (n,) the row of each block's first token (`chain.dense`).
    meta
        ``classes`` (K) and ``attributes`` (p, including the three biases); optional ``lower`` and ``upper`` (d,), and
        ``loss``, ``balanced``, ``label_counts`` and ``n_train`` of `chain.costs`.

    Raises
    ------
    ValueError
        If a block is empty, has a label outside 0..K-1, an attribute outside 0..p-1, or a value that is not finite (the
        message names the first such block), if the lengths of arrays do not agree, if the loss is none, or if the
        constraints leave a block without a labelling.
    """
    if "pair_attributes" in meta:
        raise ValueError("chain: bigram templates are gone; featurize again with U templates in their place")
    K, p = int(meta["classes"]), int(meta["attributes"])
    labels, ptr = np.asarray(arrays["labels"]), np.asarray(arrays["labels_ptr"], dtype=np.int64)
    if labels.size != ptr[-1]:
        raise ValueError(f"chain: labels has {labels.size} entries, expected {int(ptr[-1])}")
    if p * K >= 2**31:
        raise ValueError(f"chain: {p} attributes x {K} labels exceed the 2^31 weights that 32-bit ids can address")
    lengths = np.diff(ptr)
    _refuse("no tokens", lengths <= 0, np.arange(lengths.size + 1))
    wrong = labels < 0 if "decode_only" in arrays else (labels < 0) | (labels >= K)
    _refuse(f"a label outside 0..{K - 1}", wrong, ptr)
    weight, blocked = block_weights("chain", arrays, lengths.size), blocked_scores(arrays, K)
    refuse_lengths(blocked, lengths)
    tokens = (_sparse if "ids" in arrays else _dense)(arrays, p, ptr)
    gram, gram_ptr = _inner_products(arrays, tokens, ptr)
    return Chain(
        n=lengths.size,
        d=p * K + K * K,
        local_ptr=frozen(np.cumsum(np.append(0, lengths * K + K * K)), np.int64),
        label_ptr=frozen(ptr),
        truth=frozen(labels, np.uint8 if max(K, int(labels.max(initial=0)) + 1) <= 256 else np.int16),
        lower=frozen(np.asarray(meta.get("lower", ())), np.float64),
        upper=frozen(np.asarray(meta.get("upper", ())), np.float64),
        labels=K,
        longest=int(lengths.max(initial=1)),
        tokens=tokens,
        gram_ptr=frozen(gram_ptr, np.int64),
        gram=frozen(gram, np.float32),
        scale=frozen(np.stack([units_of(lengths, meta) / weight, weight], axis=1).reshape(-1)),
        costs=frozen(np.concatenate([cost_table(arrays, meta, K), blocked]).reshape(-1)),
    )


def _sparse(arrays: Mapping[str, np.ndarray], p: int, ptr: np.ndarray) -> Sparse:
    """Sparse rows."""
    ids, counts, values = (np.asarray(arrays.get(name, np.empty(0))) for name in ("ids", "counts", "values"))
    row_ptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    for name, got, expected in (
        ("counts", counts.size, int(ptr[-1])),
        ("ids", ids.size, int(row_ptr[-1])),
        ("values", values.size, ids.size if values.size else 0),
    ):
        if got != expected:
            raise ValueError(f"chain: {name} has {got} entries, expected {expected}")
    _refuse(f"an attribute outside 0..{p - 1}", (ids < 0) | (ids >= p), row_ptr[ptr])
    _refuse("a value that is not finite", ~np.isfinite(values), row_ptr[ptr])
    small = np.uint8 if p <= 256 else np.uint32  # two types: each is compiled anew. uint8 for pixels
    return Sparse(frozen(row_ptr, np.int64), frozen(ids, small), frozen(values, np.float32))


def _dense(arrays: Mapping[str, np.ndarray], p: int, ptr: np.ndarray) -> Dense:
    """Rows of a matrix."""
    values, lengths = np.asarray(arrays["values"]), np.diff(ptr)
    blocks = np.arange(lengths.size + 1)
    first = np.asarray(arrays.get("first", ptr[:-1]), np.int64)
    if values.ndim != 2 or values.shape[1] != p - 3 or first.shape != lengths.shape:
        raise ValueError(
            f"chain: expected values (rows, {p - 3}) and first ({lengths.size},), got {values.shape} and {first.shape}"
        )
    _refuse("rows that values lacks", (first < 0) | (first + lengths > len(values)), blocks)
    if not np.isfinite(values.sum(axis=1)).all():
        rows = zip(first.tolist(), lengths.tolist(), strict=True)
        _refuse(
            "a value that is not finite", np.array([not np.isfinite(values[a : a + T]).all() for a, T in rows]), blocks
        )
    return Dense(frozen(first), frozen(values, np.float32))


def _inner_products(
    arrays: Mapping[str, np.ndarray], tokens: Sparse | Dense, ptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``gram`` and ``gram_ptr``, stored or computed."""
    lengths = np.diff(ptr)
    if "gram" in arrays:
        gram, gram_ptr = np.asarray(arrays["gram"]), np.asarray(arrays["gram_ptr"])
    else:
        blocks = [*tokens.grams(ptr)]
        gram, gram_ptr = np.concatenate(blocks), np.cumsum([0, *(block.size for block in blocks)])
    held = np.diff(gram_ptr)
    if not np.all((held == lengths**2) | (held == 0)):
        raise ValueError("chain: gram must hold T * T numbers for each block, or none; featurize again")
    return gram, gram_ptr


def _refuse(fault: str, bad: np.ndarray, ptr: np.ndarray) -> None:
    """Raise ValueError if `bad` has a True, naming its block (block i has the entries ptr[i]:ptr[i + 1])."""
    if bad.any():
        block = int(np.searchsorted(ptr, int(np.argmax(bad)), side="right")) - 1
        raise ValueError(f"chain: block {block} has {fault}")
