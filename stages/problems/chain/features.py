"""Arrays of chains that featurize computes: biases as attributes, inner products of tokens. Layouts as in `chain`."""

from __future__ import annotations

import numpy as np

BIASES = ("bias", "bias:first", "bias:last")
"""The last three attributes of every chain problem."""

LONGEST = 4096
"""Tokens of the longest block with a Gram matrix, which takes 64 MiB."""

MOST = (1 << 24) - 1
"""Tokens of the longest block: float32 holds their numbers exactly."""

DENSE, TILE = 1 << 24, 256
"""Most entries of the matrix tokens x attributes of a block that is laid out; tokens of a larger one at a time."""

FEW = 256
"""So many attributes are all columns of that matrix, whether a block has them or not."""

EXACT = 1 << 12
"""Tokens with fewer attributes, all of value 1, have inner products below 2^24: float32 sums them exactly."""


def too_long(tokens: int) -> str | None:
    """Why a sequence of so many tokens cannot be trained on; None if it can."""
    if tokens <= MOST:
        return None
    return f"{tokens:,} tokens; expected at most {MOST:,}: split it by an empty line, or the end of a list"


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
    """``gram`` of one block's ``ids``, ``counts`` and optional ``values``: (T * T,) float32, exact for binary attributes,
    or the entries of `grams`. ValueError for a block that is too long to train on. Rows of a matrix have theirs
    (`dense`)."""
    if "ids" not in block:
        return {}
    if (why := too_long(block["counts"].size)) is not None:
        raise ValueError(why)
    return {"gram": _inner_products(block["ids"], block["counts"], block.get("values", block["ids"][:0]))}


def _inner_products(ids: np.ndarray, counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Gram matrix (T * T,) of the rows of a block, or its entries."""
    token = np.repeat(np.arange(counts.size), counts)
    if counts.size > LONGEST:
        return entries_of(token, ids, values if values.size else None, counts.size)
    if values.size or counts.max(initial=0) >= EXACT:
        weights = np.asarray(values, dtype=np.float64) if values.size else None
        known, column = np.unique(ids, return_inverse=True)
        column, width, alone = column.reshape(-1), known.size, None
    elif (width := int(ids.max(initial=-1)) + 1) <= FEW:  # pixels
        weights, column, alone = None, ids.astype(np.int64), np.zeros(counts.size, np.float32)
    else:
        weights, (token, column, width, alone) = None, _shared(token, ids, counts.size)
    if counts.size * width > DENSE:
        gram = _gram_of_sparse(token, column, weights, (counts.size, width))
    else:
        rows = np.bincount(token * width + column, weights=weights, minlength=counts.size * width)
        rows = rows.reshape(counts.size, width).astype(np.float64 if alone is None else np.float32)
        # not rows @ rows.T: BLAS would wake its threads for each of thousands of small products
        gram = np.einsum("ta,sa->ts", rows, rows).astype(np.float32, copy=False)
    if alone is not None:
        gram.flat[:: counts.size + 1] += alone
    return gram.reshape(-1)


def _shared(token: np.ndarray, ids: np.ndarray, tokens: int) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Entries (token, column) of the attributes that occur more than once, how many columns they have, and float32
    (tokens,), how many other attributes each token has: these count on the diagonal alone, and are most of a sentence's.
    """
    order = np.argsort(ids)
    token, ids = token[order], ids[order]
    first = np.append(True, ids[1:] != ids[:-1])
    alone = first & np.append(first[1:], True)
    several = ~alone
    column = np.cumsum(first[several]) - 1
    width = int(column[-1]) + 1 if column.size else 0
    return token[several], column, width, np.bincount(token[alone], minlength=tokens).astype(np.float32)


def _gram_of_sparse(
    token: np.ndarray, column: np.ndarray, weights: np.ndarray | None, shape: tuple[int, int]
) -> np.ndarray:
    """The same of entries (token, column) of a matrix, summed in float64, with few rows laid out at a time."""
    from scipy import sparse

    entries = np.ones(token.size) if weights is None else weights
    rows = sparse.csr_matrix((entries, (token, column)), shape)
    gram = np.empty((shape[0], shape[0]), np.float32)
    for first in range(0, shape[0], TILE):
        gram[first : first + TILE] = (rows[first : first + TILE] @ rows.T).toarray()
    return gram


def entries_of(token: np.ndarray, column: np.ndarray, values: np.ndarray | None, tokens: int) -> np.ndarray:
    """The entries of a block of `tokens` tokens, of which entry j says that token[j] has the attribute column[j]."""
    order = np.argsort(column, kind="stable")
    first = np.diff(column[order], prepend=-1) != 0
    entries = np.ones((order.size, 2), np.float32)
    entries[:, 0] = np.where(first, -1, 1) * (token[order] + 1)
    if values is not None:
        entries[:, 1] = values[order]
    return np.concatenate([entries.reshape(-1), np.zeros(int(2 * order.size == tokens**2), np.float32)])


def sizes_of(entries: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """How many numbers the entries of blocks take, of which each has so many entries and tokens."""
    return 2 * entries + (2 * entries == tokens**2)


def stand_ins(**block: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing in the place of `derived`: decoding needs no inner products."""
    return {"gram": np.empty(0, np.float32)}
