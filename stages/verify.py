"""Verify: every certificate of the path, recomputed from the supports alone by `stages.certify`.

Each breakpoint's labellings and their weights give the dual point and w, and with an exact pass the gap g, the hinge R, the
mean loss ell and the squared norm N; the dual point of w = 0 is recomputed likewise. The certificate of every lambda then
follows by arithmetic; at some lambdas between breakpoints it is also checked by an exact pass.
"""

from __future__ import annotations

from typing import Any

from stages.certify.audit import Audit, BaselessError, CertificateError, Report
from stages.parallel import HERE, Spread
from stages.problems.protocol import Problem
from storage.backend import Location
from storage.files import write_json
from storage.results import weights_of, without_weights

__all__ = ["CertificateError", "verify"]


def verify(
    problem: Problem,
    run_dir: Location,
    *,
    samples: int = 20,
    seed: int = 0,
    spread: Spread = HERE,
    report: Report = lambda done, total, what: None,
) -> dict[str, Any]:
    """Check every breakpoint and the certificates between them; writes ``verify.json``.

    Returns
    -------
    dict
        The `verify` part of ``result.json``: certified, epsilon, max_gap, max_rebuild_error, max_simplex_error, samples.

    Raises
    ------
    CertificateError
        If a certificate does not hold; names the first such lambda. A heuristic path and a method without a dual point make
        no claims, so no number of theirs raises, nor does a path that ended at a limit claim the lambda it did not finish.
        Raised for any path whose arrays do not fit the problem, or where a labelling is worth more than the max-oracle's.
    """
    arrays, attrs = without_weights(run_dir / "path.zarr")
    try:
        audit = Audit(problem, arrays, attrs, spread, report, weights_of(run_dir / "path.zarr"))
        result = _recomputed(audit, samples, seed)
    except BaselessError as error:
        result = {
            "dual_point": bool(attrs["dual_point"]),
            "certified": False,
            "epsilon": float(attrs["eps"]),
            "broken": error.broken,
        }
    broken = result["broken"]
    write_json(run_dir / "verify.json", result)
    if broken and (attrs["certified"] or not attrs["dual_point"] or "max_gap" not in result):
        raise CertificateError(
            f"{run_dir}: {len(broken)} certificate(s) do not hold; the first: {broken[0]}. See verify.json."
        )
    return result


def _recomputed(audit: Audit, samples: int, seed: int) -> dict[str, Any]:
    """The `verify` part of ``result.json``; BaselessError where nothing can be recomputed."""
    attrs, rebuilt = audit.attrs, audit.breakpoints()
    intervals = audit.twin.intervals()
    sampled = audit.sampled(samples, seed) if intervals else []
    closed, relative = audit.twin.closed(), bool(intervals and attrs["relative"])
    gaps = [share(b.gap, b.primal) if relative else b.gap for b in rebuilt] + intervals + [s["gap"] for s in sampled]
    claimed = bool(attrs["certified"] and attrs["dual_point"])
    return {
        "dual_point": bool(attrs["dual_point"]),
        "certified": claimed and not audit.broken and all(map(audit.twin.claims, range(len(rebuilt)))),
        "epsilon": float(attrs["eps"]),
        "max_gap": max(gaps),
        "max_rebuild_error": max(b.rebuild_error for b in rebuilt),
        "max_simplex_error": max(b.simplex_error for b in rebuilt),
        "lambda_low": float(closed[-1]) if closed.size else None,
        "samples": sampled,
        "broken": audit.broken,
    }


def share(gap: float, primal: float) -> float:
    """gap / primal; the gap itself where the primal value is 0, as where no labelling has a loss."""
    return gap / primal if primal > 0.0 else gap
