"""result.json, the one file a program reads first, and the summary a person reads."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from gapwise.pipeline.advice import what_next
from gapwise.pipeline.config.settings import Settings
from gapwise.pipeline.rundir import RunDir, read_json
from gapwise.pipeline.stage_graph import flow_of, stages
from gapwise.records import Facts, Record
from gapwise.stages.certify.verdict import Doubt, Verdict, verdict_of
from gapwise.stages.choice.rules import LOSS, Edge, baseline, picked_in_words
from gapwise.stages.problems.capabilities import UPPER_BOUNDED
from gapwise.storage.backend import Location
from gapwise.storage.files import DamagedError
from gapwise.storage.format import FORMAT_VERSION

PATH_FIELDS = ("lambda", "gap", "primal", "dual", "effective_passes", "oracle_calls", "seconds")
VERIFY_FIELDS = ("certified", "epsilon", "max_gap", "max_rebuild_error", "max_simplex_error")
EVALUATE_FIELDS = ("best_lambda", "train_loss", "test_loss")
log = logging.getLogger("gapwise")


def build(settings: Settings, directory: RunDir) -> Record:
    """The content of result.json, from what the stages wrote; FileNotFoundError or DamagedError names what is missing."""
    result = {"format_version": FORMAT_VERSION, "key": directory.key, "experiment": directory.manifest["experiment"]}
    for stage in stages().values():
        if stage.result is not None and stage.name in directory.manifest["stages"]:
            result |= stage.result(settings, directory)
    return result


def complete(directory: RunDir, settings: Settings) -> Record | None:
    """result.json of a run that has nothing left to do, otherwise None.

    That is so only if what every stage left behind is there and is what it left. `directory` then has its manifest.
    """
    try:
        result = read_json(directory.path / "result.json", seal=True)
        manifest = read_json(directory.path / "manifest.json", seal=True)
    except DamagedError as error:
        log.warning("%s; it is made again", error)
        return None
    for part in (result, manifest):
        if part is None or part.get("key") != directory.key or part.get("format_version") != FORMAT_VERSION:
            return None
    if any(stage.has_more(manifest["stages"], settings) for stage in flow_of(settings).values()):
        return None
    if not _is_result(result):
        log.warning("%s/result.json: not what a run leaves; it is made again", directory.path)
        return None
    directory.manifest = manifest
    return None if directory.damaged() else dict(result)


def _is_result(record: Facts) -> bool:
    """Whether `record` has everything that `summary` reads."""
    parts = {"verify": VERIFY_FIELDS, "evaluate": EVALUATE_FIELDS, "problem": ("name", "n", "d")}
    path = record.get("path")
    return (
        all(isinstance(record.get(part), dict) and {*fields} <= record[part].keys() for part, fields in parts.items())
        and _has_verdict(record)
        and isinstance(record.get("status"), str)
        and isinstance(path, list)
        and len(path) > 0
        and all(isinstance(row, dict) and {*PATH_FIELDS} <= row.keys() for row in path)
    )


def _has_verdict(record: Facts) -> bool:
    try:
        verdict_of(record.get("verdict"))
    except ValueError:
        return False
    return True


def facts_of(path: Location, fields: tuple[str, ...]) -> Record:
    """`fields` of a stage's JSON file, and all other single numbers and words in it, such as a structure's metrics."""
    record = read_json(path)
    if record is None:
        raise FileNotFoundError(f"{path}: missing although its stage is done; remove manifest.json's entry to redo it")
    missing = [name for name in fields if not isinstance(record, dict) or name not in record]
    if missing:
        raise DamagedError(
            f"{path}: {missing[0]} is missing; delete the file and repeat the command, which makes it again"
        )
    others = {
        k: v for k, v in record.items() if k not in fields and (v is None or isinstance(v, bool | int | float | str))
    }
    return {name: record[name] for name in fields} | others


def breakpoints(run_dir: Location) -> tuple[list[Record], Record]:
    """One record per breakpoint of path.zarr, in the order they were solved; and its attributes."""
    from gapwise.storage.layout import BOUNDS, read_group

    bounded = read_group(run_dir / "path.zarr", ())[1].get("certainty") == UPPER_BOUNDED
    fields = (*PATH_FIELDS, *(spec.name for spec in BOUNDS if bounded))
    arrays, attrs = read_group(run_dir / "path.zarr", (*fields, "status"))
    columns: dict[str, list[object]] = {name: arrays[name].tolist() for name in fields}
    columns["status"] = [attrs["status_meanings"][code] for code in arrays["status"].tolist()]
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return records, attrs


def summary(
    result: Facts,
    run_dir: Location,
    width: int = 100,
    took: Mapping[str, float] | None = None,
    solve: Facts | None = None,
    places: str | None = None,
) -> str:
    """A few lines for the end of a run: what was solved, at what cost, how good it is, where to look, what to do next.

    `took`: seconds of this command by stage, and of compiling, which they contain. `solve`: the manifest's facts of the
    solve, which name the limit that ended it. `places`: where runs and what MLflow shows of them lie.
    """
    path, verdict, best = result["path"], verdict_of(result["verdict"]), result["evaluate"]
    problem, last = result["problem"], path[-1]
    lines = [("problem", f"{problem['name']}: {problem['n']:,} training examples, {problem['d']:,} features")]
    within = result.get("every_lambda_within")
    every = "" if within is None else f" · every λ within {_number(within)}"
    count = f"{len(path)} breakpoint" + "s" * (len(path) != 1)
    lines.append(("path", f"{count}, λ {path[0]['lambda']:.3g} … {last['lambda']:.3g} · {result['status']}{every}"))
    passes, calls, seconds = (
        sum(record[name] for record in path) for name in ("effective_passes", "oracle_calls", "seconds")
    )
    lines.append(("work", f"{passes:.1f} effective passes · {calls:,.0f} oracle calls · {seconds:.1f} s solving"))
    if took:
        longest = {name: spent for name, spent in took.items() if name != "compiling" and spent >= 0.5}
        spent = " · ".join(f"{name} {seconds:.0f}" for name, seconds in longest.items())
        compiling = f" (compiling {took['compiling']:.0f} of it)" if took.get("compiling", 0.0) >= 0.5 else ""
        total = sum(seconds for name, seconds in took.items() if name != "compiling")
        lines.append(("time", f"{total:.0f} s{compiling}" + (f": {spent}" if spent else "")))
    primal = verdict.doubt is Doubt.NO_DUAL_POINT and len(path) == 1
    word = verdict.words + (f" · primal objective {_number(last['primal'])}" if primal else "")
    lines.append(("verify", word + _numbers(verdict)))
    if verdict.dual_point:
        lines.append(("", _objective(path, best)))
    if verdict.proven is not None:
        text = f"oracle proven optimal on {verdict.proven:.1%} of the examples"
        if verdict.dual_point and verdict.bound_slack_share is not None:  # rounding may leave less than none
            text += f"; its bounds use {max(verdict.bound_slack_share, 0.0):.2%} of ε"
        lines.append(("", text))
    before = " before the refit" if result.get("refit") else ""
    losses = f"test loss{before} {_number(best['test_loss'])} · train loss {_number(best['train_loss'])}"
    lines.append(("best", f"λ {_number(best['best_lambda'])} ({_picked(best)}) · {losses}"))
    if best.get("best_edge"):
        lines.append(("", f"this λ lies {Edge(best['best_edge']).words}"))
    extra = {k: v for k, v in best.items() if k not in EVALUATE_FIELDS and k.startswith("test_") and _is_number(v)}
    if (nothing_learnt := baseline(best)) is not None:
        extra[f"{nothing_learnt[0]}: test loss"] = nothing_learnt[1]
    if extra:
        lines.append(("", " · ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in extra.items())))
    if refit := result.get("refit"):
        lines.append(("refit", _refitted(refit)))
        measured = {name: value for name, value in refit.items() if name.startswith("test_") and name != "test_loss"}
        if measured:
            lines.append(
                ("", " · ".join(f"{name.replace('_', ' ')} {_number(value)}" for name, value in measured.items()))
            )
    if advice := what_next(result, solve):
        lines.append(("next", advice))
    lines.append(
        ("look at", "report.html · figures/*.png · path.zarr (xarray.open_zarr(…, consolidated=False)) · result.json")
    )
    if places:
        lines.append(("stored", places))
    rule = "─" * min(width, 88)
    return "\n".join([rule, *(f"{name:>8}  {text}" for name, text in lines), rule])


def _objective(path: Sequence[Facts], best: Facts) -> str:
    """The objective and its gap at the solved lambda nearest to the best one."""
    record = min(path, key=lambda record: abs(math.log(record["lambda"] / best["best_lambda"])))
    primal, gap = record["primal"], record["gap"]
    share = f", {gap / primal:.2g} of it" if _is_number(primal) and _is_number(gap) and primal > 0.0 else ""
    return f"objective {_number(primal)} at λ {_number(record['lambda'])} · gap {_number(gap)}{share}"


def _refitted(refit: Facts) -> str:
    """The model of all training blocks, validation blocks among them."""
    where = (
        f"λ {_number(refit['lambda'])} trained again on all training examples · test loss {_number(refit['test_loss'])}"
    )
    gap = f"gap {_number(refit['gap'])} of an objective of {_number(refit['primal'])}"
    return f"{where} · {gap}: {verdict_of(refit['verdict']).words}"


def _picked(best: Facts) -> str:
    """What the best lambda was chosen on, in words."""
    if "validation_blocks" not in best:
        return "optimistic: λ chosen on the test split; dataset.validation=0.2 gives an honest one"
    blocks = int(best["validation_blocks"])
    by = best.get("criterion", LOSS)
    said = picked_in_words(best, f"{by.replace('_', ' ')} on {blocks:,} validation example" + "s" * (blocks != 1))
    if "criterion" in best:
        return f"{said}: {_number(best[f'validation_{by}'])}"
    return (
        said if best.get("picked_by") == "one_se" else f"{said}; one standard error: λ {_number(best['one_se_lambda'])}"
    )


def _numbers(verdict: Verdict) -> str:
    """The largest gap, what it may be, and how well the weights were rebuilt; empty without a dual point."""
    if not verdict.dual_point:
        return ""
    bound = verdict.sense if verdict.allowed is None else f"{verdict.sense}, ε {_number(verdict.allowed)}"
    rebuilt = (
        ""
        if verdict.rebuild_error is None
        else f"; stored and recomputed weights agree to {_number(verdict.rebuild_error)}"
    )
    return f": largest gap {_number(verdict.largest_gap)} ({bound}){rebuilt}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> str:
    return f"{value:.3g}" if _is_number(value) and math.isfinite(value) else str(value)
