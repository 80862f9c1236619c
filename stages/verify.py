"""Verify: every certificate of the path, recomputed from the supports alone by `stages.certify`.

Each breakpoint's labellings and their weights give the dual point and w, and with an exact pass the gap g, the hinge R, the
mean loss ell and the squared norm N; the dual point of w = 0 is recomputed likewise. The certificate of every lambda then
follows by arithmetic; at some lambdas between breakpoints it is also checked by an exact pass.
"""

from __future__ import annotations

from typing import Any

from stages.certify.audit import Audit, CertificateError, Report
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
        no claims, so they never raise, nor does a path that ended at a limit claim the lambda it did not finish.
    """
    arrays, attrs = without_weights(run_dir / "path.zarr")
    audit = Audit(problem, arrays, attrs, spread, report, weights_of(run_dir / "path.zarr"))
    rebuilt = audit.breakpoints()
    intervals = audit.twin.intervals()
    sampled = audit.sampled(samples, seed) if intervals else []
    closed, relative = audit.twin.closed(), bool(intervals and attrs["relative"])
    gaps = [b.gap / (b.primal if relative else 1.0) for b in rebuilt] + intervals + [s["gap"] for s in sampled]
    claimed = bool(attrs["certified"] and attrs["dual_point"])
    result = {
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
    write_json(run_dir / "verify.json", result)
    if audit.broken and (attrs["certified"] or not attrs["dual_point"]):
        raise CertificateError(
            f"{run_dir}: {len(audit.broken)} certificate(s) do not hold; the first: {audit.broken[0]}. See verify.json."
        )
    return result
