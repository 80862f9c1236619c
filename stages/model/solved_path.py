"""What path.zarr says of the solve that left it, and what it has to say to be the path that was asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapwise.records import Facts, Record
from gapwise.stages.problems.capabilities import ESTIMATE, EXACT, UPPER_BOUNDED, certainty_of
from gapwise.stages.problems.protocol import Problem
from gapwise.stages.solver.engine import Engine
from gapwise.stages.solver.methods import method_options
from gapwise.stages.solver.options import ENDED, WHOLE, MethodOptions, PathOptions, Status
from gapwise.stages.solver.path.rules import path_rule, rules
from gapwise.storage.format import FORMAT_VERSION
from gapwise.storage.layout import BOUNDS, CELL_CERTIFICATES, CELLS, PATH, TWO_POINTS, ArraySpec
from gapwise.storage.results import path_arrays
from gapwise.storage.sink import CommitSink, MemorySink

NUMBERS = ("lambda", "lambda_low", "gap", "hinge", "loss_dual", "norm2")
"""The argument of `PathRule.model`."""


def status_of(engine: Engine, sink: CommitSink | MemorySink) -> Status:
    """How the walk ended; given lambdas have ended with the first limit that one of them reached."""
    assert engine.status is not None
    if engine.status is not Status.CONVERGED or not engine.task.path.given:
        return engine.status
    statuses = [list(Status)[int(code)] for code in sink.columns(("status",))["status"]]
    return next((status for status in statuses if status is not Status.CONVERGED), Status.CONVERGED)


def cells_of(engine: Engine, sink: CommitSink | MemorySink) -> dict[str, np.ndarray]:
    """The model of every lambda of a path (`PathRule.model`); {} of given lambdas."""
    columns = sink.columns(NUMBERS)
    order = np.argsort(-columns["lambda"], kind="stable")
    return engine.rule.model({name: column[order] for name, column in columns.items()})


def kept_of(engine: Engine) -> list[int] | None:
    """Numbers of the breakpoints that the certificate of an open-ended path rests on; None: all."""
    rule = engine.rule.open_end()
    return None if rule is None else rule.supporting


def attributes(engine: Engine, status: Status, key: str) -> Record:
    """The attributes of path.zarr."""
    task, solver, start, rule = engine.task, engine.solver, engine.start, engine.rule.open_end()
    return {
        **of_options(task.path, task.options, seed=task.seed, key=key, certainty=certainty_of(task.problem)),
        "status": status.value,
        "status_meanings": [s.value for s in Status],
        "view": solver.it.views[0],
        "cached_view": solver.it.views[1],
        "own_primal": solver.rewrites_w,
        **solver.facts(),
        "n": task.problem.n,
        "d": task.problem.d,
        **({} if start is None else start.scalars()),
        **({} if rule is None else rule.attributes()),
    }


def of_options(path: PathOptions, options: MethodOptions, *, seed: int, key: str, certainty: str) -> Record:
    """The attributes that follow from what was asked for; `certainty`: what the gaps of the problem are."""
    exact = path.can.exact
    return {
        "key": key,
        "seed": seed,
        "method": options.method,
        "rule": path.rule,
        "eps": path.eps if path.can.finds_lambdas else path.tolerance,
        "relative": path.relative,
        "kappa": path.kappa,
        "lambda_min": path.lambda_min,
        **({"end": path.end} if path.end != WHOLE else {}),
        "certified": options.certifies and exact and certainty != ESTIMATE,
        "certainty": certainty if exact else ESTIMATE,
        "dual_point": options.certifies,
        "between": path.can.between,
    }


def in_memory(engine: Engine, sink: MemorySink, key: str) -> tuple[dict[str, np.ndarray], Record]:
    """(arrays, attributes) as `storage.results.read_path` would read them, had the walk been written."""
    arrays = path_arrays([b.record() for b in sink.breakpoints], cells_of(engine, sink), kept_of(engine))
    attrs = {"format_version": FORMAT_VERSION, **attributes(engine, status_of(engine, sink), key)}
    return arrays, json.loads(json.dumps(attrs))


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
    attributes = of_options(path, method_options(method=method), seed=seed, key=key, certainty=certainty)
    if path.can.finds_lambdas and not path.can.two_points:
        attributes["own_primal"] = False
    if path.can.open_ended:  # its eps is the one reached
        del attributes["eps"]
    if status is not None:
        attributes["status"] = status
    return Asked(attributes, path.eps if path.can.open_ended else math.inf, path.given)


def certainty_here(problem: Problem, attrs: Facts) -> str:
    """What the gaps of a stored path are: estimates where stale gaps decided."""
    rule = attrs.get("rule")
    return certainty_of(problem) if rule not in rules() or path_rule(rule).exact else ESTIMATE


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
    faults += [f"{part}: nothing is stored that can be used" for part in unusable(arrays, attrs, certainty_of(problem))]
    # that rounding ended it above the eps asked for is for its verifier to check
    if attrs.get("status") in ENDED - {Status.ROUNDING_LIMIT} and not float(attrs.get("eps", math.inf)) <= asked.eps:
        faults.append(f"attribute eps: {attrs.get('eps')!r} is stored, at most {asked.eps!r} was asked for")
    if attrs.get("status") != "TIME_LIMIT" and "lambda" in arrays:
        missing = [lam for lam in asked.lambdas if not np.any(arrays["lambda"] == lam)]
        if missing:
            faults.append(f"lambda: {arrays['lambda'].tolist()} are stored, {missing} were asked for as well")
    return faults


def unusable(arrays: Mapping[str, np.ndarray], attrs: Facts, certainty: str) -> list[str]:
    """Arrays and attributes of a stored path, without its weights, that are missing or cannot be what solve writes."""
    rule = attrs.get("rule")
    if rule not in rules():
        return [f"attribute rule: {rule!r}, one of {', '.join(rules())}"]
    faults = [f"array {spec.name}" for spec in specs_of(attrs, certainty) if spec.name not in arrays]
    known = [status.value for status in Status]
    meanings = attrs.get("status_meanings")
    if not (isinstance(meanings, list) and meanings and meanings == known[: len(meanings)]):  # later versions add some
        faults.append("attribute status_meanings")
    elif "status" in arrays and not np.isin(arrays["status"], np.arange(len(meanings))).all():
        faults.append("array status")
    if not isinstance(attrs.get("own_primal"), bool):
        faults.append("attribute own_primal")
    for name in ("lam_top", "hinge_at_zero", "psi_norm2") if path_rule(rule).finds_lambdas else ():
        if not isinstance(attrs.get(name), int | float):
            faults.append(f"attribute {name}")
    return faults


def specs_of(attrs: Facts, certainty: str) -> list[ArraySpec]:
    """The arrays that a path with these attributes has, without its weights; `certainty`: of the problem's gaps."""
    of_path = path_rule(str(attrs["rule"])).finds_lambdas
    parts = [
        PATH,
        BOUNDS if certainty == UPPER_BOUNDED else (),
        TWO_POINTS if of_path and attrs.get("own_primal") else (),
        CELLS if of_path else (),
        CELL_CERTIFICATES if of_path and attrs.get("between") else (),
    ]
    return [spec for part in parts for spec in part if spec.name != "weights"]
