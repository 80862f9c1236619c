"""Where a path begins: the dual point of w = 0 and the largest lambda worth solving (O16 Alg. 6, l. 1-6)."""

from __future__ import annotations

import logging

import numpy as np
from numba import njit

from gapwise.stages.problems.compiled import driver
from gapwise.stages.problems.moves import norm2_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import JIT, Problem, frozen, max_local_size
from gapwise.stages.problems.simd import one_type
from gapwise.stages.solver.objective import require_cone
from gapwise.stages.solver.options import PathOptions
from gapwise.stages.solver.oracles import answers_at
from gapwise.stages.solver.path.rule import PathStart, closing

log = logging.getLogger("gapwise.init_path")


@driver
def start_driver(fingerprint: str):
    """`add_psi(P, labels, psi, total, delta_all, start, stop)`: psi += (1/n) sum_i psi_i, psi_i = B_i (m_i(y_i) -
    m_i(labels_i)), and total[0] += sum_i ||psi_i||, over blocks start to stop - 1; labels (n, longest).

    delta_all (largest p_i,) is workspace, one for all calls: to map fresh memory takes ten times as long as to clear it.
    """

    @njit(cache=True, **JIT)
    def add_psi(P, labels, psi, total, delta_all, start, stop):
        fingerprint  # noqa: B018
        n = P.label_ptr.size - 1
        for i in range(start, stop):
            delta = delta_all[: P.local_ptr[i + 1] - P.local_ptr[i]]
            delta[:] = 0.0
            first, last = P.label_ptr[i], P.label_ptr[i + 1]
            P.add(i, one_type(P.truth[first:last]), 1.0, delta)
            P.add(i, labels[i, : last - first], -1.0, delta)
            total[0] += np.sqrt(max(P.norm2(i, delta), 0.0))
            P.push(i, 1.0 / n, delta, psi)

    return add_psi


@driver
def decode_driver(fingerprint: str):
    """`excess(P, w, blocks, out)`: out_k <- max_y <theta_i, m_i(y)> - <theta_i, m_i(y_i)>, i = blocks_k."""

    @njit(cache=True, **JIT)
    def excess(P, w, blocks, out):
        fingerprint  # noqa: B018
        w = one_type(w)
        scratch = P.scratch()
        for k in range(blocks.size):
            i = blocks[k]
            theta = np.empty(P.local_ptr[i + 1] - P.local_ptr[i])
            P.scores(i, w, theta)
            truth = one_type(P.truth[P.label_ptr[i] : P.label_ptr[i + 1]])
            y = np.empty_like(truth)
            P.decode(i, theta, y, scratch)
            out[k] = P.value(i, theta, y) - P.value(i, theta, truth)

    return excess


def excess(problem: Problem, w: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """float64, (blocks,): max_y -<w, psi_i(y)>; one decoding per block."""
    out = np.empty(blocks.size)
    decode_driver(problem)(problem, frozen(w), blocks, out)
    return out


def start_below_zero(problem: Problem, path: PathOptions, spread: Spread = HERE) -> PathStart:
    """Where w = 0 ceases to be eps-optimal; takes n oracle calls, spread as `spread` says.

    With the largest losses as its dual point, w = 0 has the gap ||psi~||^2 / (2 lambda), so it covers all
    lambda >= ||psi~||^2 / (2 eps). The first lambda solved is an eighth of that. For a relative goal, eps stands for
    eps R_0.

    Raises
    ------
    ValueError
        If a bound is neither 0 nor infinite.
    """
    labels, losses, psi, scale = at_zero(problem, spread)
    hinge, psi_norm2 = float(np.sum(losses)) / problem.n, norm2_of(problem, psi)
    eps = path.eps * (hinge if path.relative else 1.0)
    top, lam = (psi_norm2 / (2.0 * closing(eps)), psi_norm2 / (16.0 * eps)) if eps > 0.0 else (0.0, 0.0)
    return path_start(lam, top, hinge, psi_norm2, labels, losses, psi, problem.n, scale)


def paper_start(problem: Problem, path: PathOptions, spread: Spread = HERE) -> PathStart:
    """lambda_inf = (||psi~||^2 + mean_i max_y <-psi~, psi_i(y)>) / (kappa eps): 2 n oracle calls (O16 Alg. 6).

    Raises
    ------
    ValueError
        If a bound is neither 0 nor infinite.
    """
    labels, losses, psi, scale = at_zero(problem, spread)
    hinge, psi_norm2 = float(np.sum(losses)) / problem.n, norm2_of(problem, psi)
    over = np.concatenate(spread.blocks(excess, problem, psi, range(problem.n)))
    lam = (psi_norm2 + float(np.sum(over)) / problem.n) / (path.kappa * path.eps)
    return path_start(lam, lam, hinge, psi_norm2, labels, losses, psi, 2 * problem.n, scale)


def at_zero(problem: Problem, spread: Spread) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The oracle's labellings at w = 0 (flat), losses (n,), psi~ (d,) clipped to the cone, mean_i ||psi_i|| (O16 Alg. 6).

    If no labelling has a loss, the true ones stand for them: their loss is the largest, too, and they say at once that
    w = 0 is optimal for every lambda.
    """
    require_cone(problem)
    answers = answers_at(problem, np.zeros(problem.d), range(problem.n), spread)
    if answers.bound is not answers.h and not answers.proven.all():
        i = int(np.argmin(answers.proven))
        raise ValueError(
            f"path: at w = 0 the bound on block {i} exceeds the oracle's answer by {answers.bound[i] - answers.h[i]:.3g}, "
            "but a path needs the largest losses themselves: let max_oracle and max_bound agree there, or give the lambdas: "
            "path=grid or path=single, in Python lam as a number or a list"
        )
    if not answers.losses.any():
        log.warning(
            "the max-oracle finds no labelling with a task loss above 0: w = 0 is optimal for every lambda, and nothing is "
            "learned"
        )
        return problem.truth, answers.losses, np.zeros(problem.d), 0.0
    psi, total, work, add = np.zeros(problem.d), np.zeros(1), np.empty(max_local_size(problem)), start_driver(problem)
    spread.in_order(lambda start, stop: add(problem, answers.vertex, psi, total, work, start, stop), problem)
    scale = float(total[0] / problem.n)
    if problem.lower.size:
        psi = np.clip(psi, problem.lower, problem.upper)
    mask = np.arange(answers.vertex.shape[1]) < np.diff(problem.label_ptr)[:, None]
    return answers.vertex[mask], answers.losses, psi, scale


def path_start(
    lam: float, top: float, hinge: float, psi_norm2: float, labels: np.ndarray, losses: np.ndarray, psi: np.ndarray,
    calls: int, scale: float,
) -> PathStart:  # fmt: skip
    """The start. If all labellings of w = 0 score as the truth does, any first lambda will do; it is 1."""
    first, above = (1.0, 1.0) if lam == 0.0 else (lam, top)
    return PathStart(first, above, hinge, psi_norm2, labels, losses, psi, calls, scale)
