"""Verify: every certificate of the path, recomputed from the supports alone by `stages.certify`.

Each breakpoint's labellings and their weights give the dual point and w, and with an exact pass the gap g, the hinge R, the
mean loss ell and the squared norm N; the dual point of w = 0 is recomputed likewise. The certificate of every lambda then
follows by arithmetic; at some lambdas between breakpoints it is also checked by an exact pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.certify.audit import Audit, BaselessError, CertificateError, Report
from gapwise.stages.certify.cells import VERIFIERS
from gapwise.stages.certify.recompute import Rebuilt, share, worst
from gapwise.stages.certify.verdict import Verdict, ends_of, judge, no_tighter, not_the_path
from gapwise.stages.model.solved_path import Asked, asked_for, certainty_here, differences, specs_of
from gapwise.stages.problems.capabilities import UPPER_BOUNDED, accuracy_of, certainty_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.storage.backend import Location
from gapwise.storage.files import write_json
from gapwise.storage.layout import misfits
from gapwise.storage.results import weights_of, without_weights

__all__ = ["Asked", "CertificateError", "Source", "asked_for", "in_memory", "verify"]

REMEDY = (
    " If path.zarr has changed since it was solved, delete it: the same command makes it again from state/. If that fails "
    "as well, delete both it and state/ to solve again from the beginning."
)


@dataclass(frozen=True)
class Source:
    """A solved path, wherever it is."""

    name: str
    """What messages call it."""
    arrays: Mapping[str, np.ndarray]
    """Those of path.zarr, without the weights."""
    attrs: Facts
    weights: Callable[[int], np.ndarray]
    """weights(b): the weights (d,) of breakpoint b; those of all together may not fit in memory."""
    remedy: str = ""
    """What to do if it is wrong: a sentence, for messages."""
    keep: Callable[[Facts], None] = lambda result: None
    """Gets the result before an error is raised."""


def stored(run_dir: Location) -> Source:
    """The path.zarr of a run, whose result goes to verify.json; FileNotFoundError if there is none."""
    path, file = run_dir / "path.zarr", run_dir / "verify.json"
    return Source(
        str(run_dir), *without_weights(path), weights_of(path), REMEDY, lambda result: write_json(file, result)
    )


def in_memory(
    arrays: Mapping[str, np.ndarray], attrs: Facts, keep: Callable[[Facts], None] = lambda result: None
) -> Source:
    """A path that no folder has: arrays and attributes as those of path.zarr."""
    weights = arrays["weights"]
    others = {name: array for name, array in arrays.items() if name != "weights"}
    return Source("in memory", others, attrs, lambda b: weights[b], keep=keep)


def verify(
    problem: Problem,
    run: Location | Source,
    *,
    asked: Asked | None = None,
    samples: int = 20,
    seed: int = 0,
    spread: Spread = HERE,
    report: Report = lambda done, total, task: None,
) -> Record:
    """Check every breakpoint and the certificates between them; writes ``verify.json`` of a run.

    Parameters
    ----------
    run : Location or Source
        A run directory, or a path that is in memory (`in_memory`).
    asked : Asked, optional
        What the path has to be (`asked_for`). Without it, only the numbers of blocks and weights are compared with what
        path.zarr says of itself, and the path is checked for what it claims to be.

    Returns
    -------
    dict
        The content of ``verify.json``: what was recomputed (max_gap, max_rebuild_error, max_simplex_error, samples, broken),
        and `verdict`, the record of a `certify.verdict.Verdict`, from which certified, certainty and epsilon are taken.

    Raises
    ------
    CertificateError
        If a certificate does not hold; names the first such lambda. A heuristic path and a method without a dual point make
        no claims, so no number of theirs raises, nor does a path that ended at a limit claim the lambda it did not finish.
        Raised for any path that is not the one asked for (names the attribute, what is stored and what was asked for), whose
        arrays do not fit the problem, or where a labelling is worth more than the max-oracle's.
    """
    source, asked = run if isinstance(run, Source) else stored(run), asked or Asked({})
    attrs, arrays = source.attrs, source.arrays
    wrong = differences(problem, arrays, attrs, asked)
    if wrong:
        verdict = not_the_path(wrong)
        source.keep({"certified": verdict.certified, "broken": wrong, "verdict": verdict.record()})
        raise CertificateError(
            f"{source.name}: path.zarr is not the path of this run: {'; '.join(wrong)}.{source.remedy}"
        )
    sense, numbers = certainty_here(problem, attrs), Record()
    try:
        known = {"block": problem.n, "block_edge": problem.n + 1, "side": 2}
        if faults := misfits(arrays, specs_of(attrs, certainty_of(problem)), known):
            raise BaselessError([f"lambda of every breakpoint: {fault}" for fault in faults])
        kind = VERIFIERS[str(attrs["rule"])]
        audit = Audit(problem, arrays, attrs, spread, report, source.weights, kind, asked.eps)
        verdict, numbers = _recomputed(audit, sense, samples, seed)
        broken = audit.broken
    except BaselessError as error:
        broken = error.broken
        verdict = judge(
            attrs, sense=sense, met=0, solved=arrays["lambda"].size, lam_low=math.nan, broken=broken, baseless=True
        )
    result = {
        "dual_point": verdict.dual_point,
        "certified": verdict.certified,
        "certainty": verdict.sense,
        "epsilon": verdict.allowed,
        **numbers,
        "broken": broken,
        "verdict": verdict.record(),
    }
    source.keep(result)
    if verdict.refuted:
        see = f" See verify.json.{source.remedy}" if source.remedy else ""
        raise CertificateError(f"{source.name}: {len(broken)} certificate(s) do not hold; the first: {broken[0]}.{see}")
    return result


def _recomputed(audit: Audit, sense: str, samples: int, seed: int) -> tuple[Verdict, Record]:
    """The verdict, and the numbers of verify.json; BaselessError where nothing can be recomputed."""
    attrs, rebuilt = audit.attrs, audit.breakpoints()
    intervals = audit.verifier.intervals()
    sampled = audit.sampled(samples, seed) if intervals else []
    closed, relative = audit.verifier.closed(), bool(intervals and attrs["relative"])
    gaps = [share(b.gap, b.primal) if relative else b.gap for b in rebuilt] + intervals + [s["gap"] for s in sampled]
    met = np.array([audit.verifier.claims(b) and b not in audit.rounded for b in range(len(rebuilt))], bool)
    last = float(closed[-1]) if closed.size else math.nan
    low, high = (last, math.inf) if audit.of_path else ends_of(audit.arrays["lambda"][met])
    bounds, accuracy = bounds_of(audit), accuracy_of(audit.problem)
    largest, error = worst(gaps), worst([b.rebuild_error for b in rebuilt])
    verdict = judge(
        attrs, sense=sense, met=int(met.sum()), solved=met.size, lam_low=low, lam_high=high, largest_gap=largest,
        rebuild_error=error, broken=audit.broken, accuracy=accuracy, rounded=audit.arrays["lambda"][audit.rounded].tolist(),
        loose=loose_of(rebuilt, max(intervals, default=math.nan), relative),
        **{name: bounds.get(name, math.nan) for name in ("proven", "bound_slack_share")},
    )  # fmt: skip
    return verdict, {
        "max_gap": largest,
        "max_rebuild_error": error,
        "max_simplex_error": worst([b.simplex_error for b in rebuilt]),
        "lambda_low": last if closed.size else None,
        **bounds,
        **({} if accuracy is None else {"accuracy": accuracy}),
        "samples": sampled,
    }


def loose_of(solved: Sequence[Rebuilt], between: float, relative: bool) -> int:
    """How many solved lambdas have a certificate that says no more than the dual value 0, which needs no solve.

    `between` is the largest gap that the path claims between them, nan if none; `relative`: as a share of the objective.
    Where that exceeds the largest objective, all of them count.
    """
    largest = 1.0 if relative else max(b.primal for b in solved)
    return len(solved) if no_tighter(between, largest) else sum(bool(no_tighter(b.gap, b.primal)) for b in solved)


def bounds_of(audit: Audit) -> Record:
    """How good the bounds of an approximate oracle are, over all breakpoints; {} if there are none.

    `proven`: share of the blocks whose answer attains its bound; `bound_slack`: the mean part of the path's gaps that is due
    to the path's bounds, and `bound_slack_share` the same as a share of the gap that is allowed.
    """
    if certainty_of(audit.problem) != UPPER_BOUNDED:
        return {}
    slack = [b.bound_slack for b in audit.rebuilt]
    shares = [s / most for b, s in enumerate(slack) if (most := audit.allowed(b)) > 0.0]
    return {
        "proven": float(np.mean([b.proven for b in audit.rebuilt])),
        "bound_slack": float(np.mean(slack)),
        "bound_slack_share": float(np.mean(shares or [0.0])),
    }
