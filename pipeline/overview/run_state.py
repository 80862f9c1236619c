"""The state of a run: complete, running, interrupted …, how far it is and what came out, read without taking its lock.

It follows from the lock, manifest.json, the head of the commits and result.json.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from gapwise.pipeline.errors import one_line
from gapwise.pipeline.stage_graph import flow, stages
from gapwise.records import Facts, Record, flat
from gapwise.stages.certify.verdict import Verdict, verdict_of
from gapwise.storage.backend import Holder, Location
from gapwise.storage.files import DamagedError, changed_at, holder, listed, read_json
from gapwise.storage.format import FORMAT_VERSION, measures_of
from gapwise.storage.summary import committed, harmed, record, rows

SILENT_SECONDS = 600.0
"""After so long without a sign of life, a process that cannot be looked up is no longer taken to be running."""


@dataclass(frozen=True)
class RunState:
    """One folder in the folder of the runs. Numbers that are not known are None."""

    run: Location
    state: str
    """One of `states.STATES`."""
    why: str = ""
    """What is damaged, which error, which signal; empty where there is nothing to say."""
    manifest: Facts = field(default_factory=dict)
    result: Facts | None = None
    log: Location | None = None
    """Log of the newest invocation, of a run that is not complete."""
    commit: Facts | None = None
    """`storage.summary.committed`, of a run that is not complete."""
    holder: Holder | None = None
    lambdas: int | None = None
    """Number of lambdas in path.zarr, of a run that is solved and not complete."""
    changed: float | None = None
    """When the run last gave a sign of life, in seconds since the epoch."""

    @property
    def stages(self) -> Facts:
        """Facts of the stages that are done, by name."""
        stages = self.manifest.get("stages", {})
        return stages if isinstance(stages, Mapping) else {}

    @property
    def stage(self) -> str | None:
        """The stage that it is in, or that comes next; None if all are done."""
        left = [name for name in flow() if name not in self.stages]
        return left[0] if left else None

    @property
    def solved(self) -> str | None:
        """How the solve ended, e.g. CONVERGED."""
        status = self.stages.get("solve", {}).get("status")
        return None if status is None else str(status)

    @property
    def verdict(self) -> Verdict | None:
        """What its path proves; None before the run is complete."""
        return None if self.result is None else verdict_of(self.result["verdict"])

    def facts(self) -> Record:
        """What `gapwise ls --json` says of it."""
        path = (self.result or {}).get("path") or []
        best, verdict = (self.result or {}).get("evaluate", {}), self.verdict
        served = {} if self.result is None else measures_of(self.result)
        counts = (self.commit or {}).get("counts", {})
        science = self.manifest.get("science", {})
        number, lam = len(path) or self.lambdas, path[-1]["lambda"] if path else None
        if number is None and counts:
            number, lam = int(counts.get("breakpoint", 0)) + 1, counts.get("lam")
        return {
            "name": self.run.name, "run": str(self.run), "state": self.state, "why": self.why,
            "key": self.manifest.get("key"), "experiment": self.manifest.get("experiment"),
            "dataset": self.manifest.get("label") or science.get("dataset", {}).get("name"),
            "solver": self.manifest.get("solver"),
            "rule": science.get("path", {}).get("rule"), "seed": science.get("seed"),
            "created": self.manifest.get("created"), "changed": self.changed,
            "stage": self.stage, "stages_done": list(self.stages), "solve_status": self.solved,
            "lambdas": number, "lambda": lam, "passes": sum(r["effective_passes"] for r in path) if path else None,
            "gap": verdict and verdict.largest_gap, "epsilon": verdict and verdict.allowed,
            "certified": verdict and verdict.certified, "verdict": verdict and verdict.words,
            "certainty": verdict and verdict.sense,
            "best_lambda": best.get("best_lambda"), "test_loss": served.get("test_loss"),
            "before_refit_test_loss": None if served is best else best.get("test_loss"),
            "train_loss": best.get("train_loss"),
            "holder": None if self.holder is None else self.holder._asdict(), "science": flat(science),
        }  # fmt: skip


def run_state(run: Location) -> RunState:
    """How `run` stands. Never raises because of what it finds there."""
    state = RunState(run, "damaged")
    try:
        state = dataclasses.replace(state, holder=holder(run / "lock"))
        manifest = record(run / "manifest.json") if _has_manifest(run) else None
    except (OSError, ValueError) as error:
        barred = isinstance(error, PermissionError)
        return dataclasses.replace(state, state="unreadable" if barred else "damaged", why=one_line(error))
    if manifest is None and not state.holder:
        if _is_begun(run):
            return RunState(run, "damaged", "manifest.json is missing")
        return RunState(run, "foreign", "no manifest.json of a run")
    try:
        known = _state_of(dataclasses.replace(state, manifest=manifest or {}))
        known.facts()  # so that nothing that has another form than ours is met later
        return known
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return dataclasses.replace(state, why=f"{run}: {one_line(error)}")


def _has_manifest(run: Location) -> bool:
    """Whether manifest.json is one of ours, be it damaged: one that somebody else wrote has no seal."""
    if not (run / "manifest.json").is_file():
        return False
    with contextlib.suppress(DamagedError):
        manifest = read_json(run / "manifest.json")
        return (isinstance(manifest, dict) and "seal" in manifest) or _is_begun(run)
    return _is_begun(run)


def _is_begun(run: Location) -> bool:
    return any((run / name).exists() for name in ("lock", "state", "invocations"))


def _state_of(known: RunState) -> RunState:
    run, manifest = known.run, known.manifest
    if manifest and manifest.get("format_version") != FORMAT_VERSION:
        why = f"format version {manifest.get('format_version')}, this Gapwise reads {FORMAT_VERSION}"
        return dataclasses.replace(known, state="other version", why=why)
    result_at = changed_at(run / "result.json")
    try:
        result = record(run / "result.json")
    except ValueError as error:
        known = dataclasses.replace(known, why=one_line(error))
        result = None
    if result is not None and (harm := _harm(known)) is not None:
        known = dataclasses.replace(known, why=harm)
    ours = result is not None and result.get("key") == manifest.get("key") and not set(flow()) - set(known.stages)
    if ours and not known.holder and not known.why:
        return dataclasses.replace(known, state="complete", result=result, changed=result_at)
    logs = listed(run, "invocations/*/pipeline.log")
    commit = None if "solve" in known.stages else _commit(run)
    stamps = (changed_at(logs[-1]) if logs else None, (commit or {}).get("at"), changed_at(run / "manifest.json"))
    solved = rows(run / "path.zarr" / "lambda") if "solve" in known.stages else None
    known = dataclasses.replace(
        known,
        log=logs[-1] if logs else None,
        commit=commit,
        lambdas=solved,
        changed=max((stamp for stamp in stamps if stamp is not None), default=None),
    )
    state, why = _unfinished(known)
    return dataclasses.replace(known, state=state, why=why, result=result if ours else None)


def _harm(known: RunState) -> str | None:
    """The first output of a finished stage that is missing or has changed, as far as `harmed` looks, in words."""
    for name, facts in known.stages.items():
        declared = stages()[name].outputs if name in stages() else ()
        left = {output: facts["outputs"][output] for output in declared if output in facts.get("outputs", ())}
        figures = dict.fromkeys((f"figures/{figure}" for figure in facts.get("figures", ())), "")
        if (harm := harmed(known.run, figures | left)) is not None:
            return harm
    return None


def _commit(run: Location) -> Record | None:
    """The last commit; None also where HEAD is damaged, since a resume then falls back on the one before."""
    try:
        return committed(run / "state")
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unfinished(known: RunState) -> tuple[str, str]:
    """State, and why, of a run that is not complete."""
    if known.holder is not None and known.holder.certain:
        return "running", ""
    if known.holder is not None:
        silent = time.time() - (known.changed or 0.0) > SILENT_SECONDS
        return "silent" if silent else "running", f"{known.holder}, which cannot be looked up from here"
    if known.why:
        return "damaged", known.why
    ended = known.manifest.get("ended")
    if ended:
        return str(ended["state"]), str(ended["why"])
    return "interrupted", f"killed in {known.stage}" if known.stage else "killed at its end"
