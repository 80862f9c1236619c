"""Arrays of chains that featurize computes: biases as attributes, inner products of tokens. Layouts as in `chain`."""

from __future__ import annotations

import numpy as np

BIASES = ("bias", "bias:first", "bias:last")
"""The last three attributes of every chain problem."""

LONGEST = 4096
"""Tokens of the longest block with a Gram matrix, which takes 64 MiB."""


def with_biases(
    ids: np.ndarray, counts: np.ndarray, start: np.ndarray, attributes: int, values: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Append the ids of the biases to the rows of tokens.

    Parameters
    ----------
    ids, counts
        Attribute ids (sum of counts,), each < attributes - 3, and how many of them each token has (tokens,).
    start
        First token of each block, and the end: (n + 1,).
    attributes
        Number of attributes p, biases included.
    values
        float32, shaped like ids, or None if all are 1.

    Returns
    -------
    dict
        ``ids`` int32, ``counts`` int32, and ``values`` float32 if there are any.
    """
    tokens = np.arange(counts.size)
    token = np.concatenate([np.repeat(tokens, counts), tokens, start[:-1], start[1:] - 1])
    tails = [np.full(size, attributes - 3 + k) for k, size in enumerate((tokens.size, start.size - 1, start.size - 1))]
    order = np.argsort(token, kind="stable")
    result: dict[str, np.ndarray] = {
        "ids": np.concatenate([ids, *tails]).astype(np.int32)[order],
        "counts": np.bincount(token, minlength=tokens.size).astype(np.int32),
    }
    if values is not None:
        result["values"] = np.concatenate([values, np.ones(token.size - ids.size)]).astype(np.float32)[order]
    return result


def derived(**block: np.ndarray) -> dict[str, np.ndarray]:
    """``gram`` of one block's ``ids``, ``counts``, optional ``values``. Rows of a matrix have theirs (`dense`)."""
    if "ids" not in block:
        return {}
    row_ptr = np.append(0, np.cumsum(block["counts"]))
    return {"gram": gram_of(block["ids"], row_ptr, block.get("values", block["ids"][:0]))}


def gram_of(ids: np.ndarray, row_ptr: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Inner products (T * T,) of the sparse rows of a block, float32, exact for binary attributes; (0,) for a long block."""
    from scipy import sparse

    if row_ptr.size - 1 > LONGEST:
        return np.empty(0, np.float32)
    entries = np.asarray(values, np.float64) if values.size else np.ones(ids.size)
    rows = sparse.csr_array((entries, ids, row_ptr), (row_ptr.size - 1, int(ids.max(initial=0)) + 1))
    return np.asarray((rows @ rows.T).toarray(), np.float32).reshape(-1)


def stand_ins(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing in the place of `derived`: decoding needs no inner products."""
    return {"gram": np.empty(0, np.float32)}
