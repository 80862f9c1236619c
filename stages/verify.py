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
from gapwise.stages.certify.verdict import Verdict, claims, ends_of, judge, no_tighter, not_the_path
from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, UPPER_BOUNDED, accuracy_of, certainty_of
from gapwise.stages.problems.parallel import HERE, Spread
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import ENDED, PathOptions, Status
from gapwise.stages.solver.path.rule import attributes_of
from gapwise.stages.solver.path.rules import path_rule, rules
from gapwise.storage.backend import Location
from gapwise.storage.files import write_json
from gapwise.storage.layout import CELL_CERTIFICATES, CELLS, PATH
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


@dataclass(frozen=True)
class Asked:
    """What a run was asked for: the path has to be the answer to this and to nothing else."""

    attributes: Facts
    """Attributes of path.zarr by name, as they have to be."""
    eps: float = math.inf
    """The largest eps that the path may be certified for, where its rule says which it is, if it has come to its end."""
    lambdas: tuple[float, ...] = ()
    """Given lambdas, which all have to be there unless time ran out."""


def asked_for(
    path: PathOptions, method: str, *, seed: int, key: str, status: str | None = None, certainty: str = EXACT
) -> Asked:
    """What a configuration asks for.

    Parameters
    ----------
    status : str, optional
        How the solve stage says it ended, if that is known.
    certainty : str
        What the gaps of the problem are (`problems.capabilities`).

    Raises
    ------
    ValueError
        If there is no such method or path rule.
    """
    can = method_options(method=method)
    own = {"own_primal": False} if path.can.finds_lambdas and not path.can.two_points else {}
    attributes = {
        "key": key,
        "seed": seed,
        "method": method,
        **attributes_of(path),
        "certified": claims(exact=path.can.exact, dual_point=can.certifies, sense=certainty),
        "certainty": certainty if path.can.exact else ESTIMATE,
        "dual_point": can.certifies,
        "between": path.can.between,
        **own,
    }
    if path.can.open_ended:  # its eps is the one reached
        del attributes["eps"]
    if status is not None:
        attributes["status"] = status
    return Asked(attributes, path.eps if path.can.open_ended else math.inf, path.given)


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


def certainty_here(problem: Problem, attrs: Facts) -> str:
    """What the gaps of a stored path are: estimates where stale gaps decided."""
    rule = attrs.get("rule")
    return certainty_of(problem) if rule not in rules() or path_rule(rule).exact else ESTIMATE


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


def differences(problem: Problem, arrays: Mapping[str, np.ndarray], attrs: Facts, asked: Asked) -> list[str]:
    """What of a stored path is not as the problem and `asked` say, each with its name; [] if all is."""
    certainty = certainty_here(problem, attrs)
    if certainty_of(problem) == EXACT:
        attrs = {"certainty": certainty, **attrs}  # paths solved before there was another
    claim = {"certified": False} if certainty == ESTIMATE else {}
    wanted = {"n": problem.n, "d": problem.d, "certainty": certainty, **claim, **asked.attributes}
    faults = [
        f"attribute {name}: {attrs[name]!r} is stored, {value!r} was asked for"
        if name in attrs
        else f"attribute {name}: nothing is stored, {value!r} was asked for"
        for name, value in wanted.items()
        if name not in attrs or attrs[name] != value
    ]
    faults += [f"{part}: nothing is stored that can be used" for part in unusable(arrays, attrs)]
    # that rounding ended it above the eps asked for is for its verifier to check
    if attrs.get("status") in ENDED - {Status.ROUNDING_LIMIT} and not float(attrs.get("eps", math.inf)) <= asked.eps:
        faults.append(f"attribute eps: {attrs.get('eps')!r} is stored, at most {asked.eps!r} was asked for")
    if attrs.get("status") != "TIME_LIMIT" and "lambda" in arrays:
        missing = [lam for lam in asked.lambdas if not np.any(arrays["lambda"] == lam)]
        if missing:
            faults.append(f"lambda: {arrays['lambda'].tolist()} are stored, {missing} were asked for as well")
    return faults


def unusable(arrays: Mapping[str, np.ndarray], attrs: Facts) -> list[str]:
    """Arrays and attributes of a stored path, without its weights, that are missing or cannot be what solve writes."""
    rule = attrs.get("rule")
    if rule not in rules():
        return [f"attribute rule: {rule!r}, one of {', '.join(rules())}"]
    of_path = path_rule(rule).finds_lambdas
    cells = (*CELLS, *(CELL_CERTIFICATES if attrs.get("between") else ())) if of_path else ()
    rows = arrays["cell_low"].size if "cell_low" in arrays else 0
    faults = [f"array {spec.name}" for spec in PATH if spec.name != "weights" and spec.name not in arrays]
    for spec in cells:
        shape = (rows, 2)[: len(spec.dims)]
        if spec.name not in arrays or arrays[spec.name].shape != shape:
            faults.append(f"array {spec.name}")
    known = [status.value for status in Status]
    meanings = attrs.get("status_meanings")
    if not (isinstance(meanings, list) and meanings and meanings == known[: len(meanings)]):  # later versions add some
        faults.append("attribute status_meanings")
    elif "status" in arrays and not np.isin(arrays["status"], np.arange(len(meanings))).all():
        faults.append("array status")
    if not isinstance(attrs.get("own_primal"), bool):
        faults.append("attribute own_primal")
    for name in ("lam_top", "hinge_at_zero", "psi_norm2") if of_path else ():
        if not isinstance(attrs.get(name), int | float):
            faults.append(f"attribute {name}")
    return faults
