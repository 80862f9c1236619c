"""One run, resumed from where it stopped, and its exit code.

Nothing is written before the configuration is known to be good; result.json is written last and marks a run complete.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from gapwise.pipeline import result
from gapwise.pipeline.compiling import Compiling
from gapwise.pipeline.compute.local import Compute, check_packages, check_scheduler
from gapwise.pipeline.config.run_options import TrackingOptions
from gapwise.pipeline.config.settings import Settings, read
from gapwise.pipeline.errors import (
    BAD_CONFIGURATION,
    DONE,
    FAILED,
    INTERRUPTED,
    ConfigError,
    explains_itself,
    one_line,
    refuse,
    refuse_setup,
)
from gapwise.pipeline.interrupt import Interrupted, Stop, number_of
from gapwise.pipeline.job import Job
from gapwise.pipeline.precompile import Precompile
from gapwise.pipeline.progress import Progress
from gapwise.pipeline.result import complete
from gapwise.pipeline.rundir import LockedError, RunDir, check_writable, locked, write_json
from gapwise.pipeline.saved import interruption, saved_of_run
from gapwise.pipeline.stage_graph import Stage, after, flow, flow_of, stages, up_to
from gapwise.pipeline.tracking.mlflow import Tracker, shown_store
from gapwise.storage.backend import Location, location
from gapwise.storage.files import remove

log = logging.getLogger("gapwise")

REFUSED = -1
"""The first stage failed, with an error that says why: the directory holds nothing that a later command would need."""


def run(cfg: DictConfig, experiment: str | None = None, overrides: Sequence[str] = (), command: str = "") -> int:
    """Carry out the composed `cfg`, as part of `experiment`; returns the exit code. `overrides`: for use without Hydra.

    `command` goes on with this run after an interruption; by default the one that started this process.

    0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted.
    """
    from gapwise.pipeline.data import source_of

    try:
        settings = read(cfg, experiment=experiment or experiment_name(), overrides=overrides or given_words())
        check_packages(settings.tracking)
        if settings.run.until is not None and settings.run.until not in flow_of(settings):
            raise ConfigError("run.until: this run has no refit; give dataset.validation, e.g. 0.2, and run.refit=true")
        source = source_of(settings)
    except (ValueError, OSError) as error:
        return refuse_setup(error)
    directory, features, features_key = locations(settings, source)
    tracker = Tracker(settings.tracking, directory)
    try:
        if finished := complete(directory, settings):
            tracker.ensure_shown()
            _export(settings, directory, features)
            return _print_summary(finished, directory, settings.tracking)
        check_scheduler(settings.compute)
        check_writable(directory.path.parent)
        with (
            locked(directory.path / "lock", _wait if settings.run.managed else None),
            Stop(ends_process=True, with_parent=settings.run.managed) as stop,
            Compute(settings.compute, stop) as pool,
        ):
            directory.prepare(settings, source, command)
            with (
                directory.invocation(_hydra_files(cfg, overrides)) as invocation,
                Progress(invocation / "pipeline.log") as progress,
            ):
                code = _guarded(Job(settings, directory, features, features_key, pool, progress, stop, tracker))
            if code == REFUSED:
                directory.discard()
                return FAILED
            return code
    except (LockedError, ValueError, OSError) as error:
        return refuse(error, FAILED)
    except KeyboardInterrupt as end:  # while waiting for another process, or the second one
        return INTERRUPTED + number_of(end)


def locations(settings: Settings, source: Mapping[str, object]) -> tuple[RunDir, Location, str]:
    """The run's directory, the location of its features, and their key; creates nothing."""
    root = location(settings.run.root)
    name, key, features_key = settings.dataset["name"], settings.run_key(source), settings.features_key(source)
    directory = RunDir(root / f"{settings.data_name}-{settings.solver.name}-{key[:8]}", key)
    return directory, root / "features" / f"{name}-{features_key[:8]}", features_key


def _guarded(job: Job) -> int:
    """Run the stages and turn however they end into an exit code; REFUSED if the directory need not be kept."""
    try:
        outcome = _run_stages(job)
        _export(job.settings, job.dir, job.features_path)
    except (Interrupted, KeyboardInterrupt) as end:
        log.warning("%s", interruption(saved_of_run(job.dir.path)))
        job.dir.ended("interrupted", "by a signal")
        job.tracker.stop()
        return INTERRUPTED + number_of(end)
    except Exception as error:
        log.debug("%s", traceback.format_exc())
        job.progress.close()
        if explains_itself(error):
            code = refuse(error, BAD_CONFIGURATION if isinstance(error, ConfigError) else FAILED)
            if job.dir.is_blank:
                return REFUSED
        else:
            traceback.print_exc()
            code = FAILED
        job.dir.ended(
            "failed", one_line(error) if explains_itself(error) else f"{type(error).__name__}: {one_line(error)}"
        )
        print(f"log: {job.progress.path}", file=sys.stderr)
        job.tracker.finish("FAILED")
        return code
    job.progress.close()
    if outcome is None:
        job.dir.ended("partial", f"ended after {[*job.dir.manifest['stages']][-1]}")
        return _print_directory(job.dir)
    job.tracker.finish("FINISHED")
    return _print_summary(outcome, job.dir, job.settings.tracking, job.seconds)


def _run_stages(job: Job) -> dict[str, object] | None:
    """Run every wanted stage that is not done; returns the content of result.json once all stages are."""
    settings, directory = job.settings, job.dir
    _forget_damaged(job)
    if settings.run.until is not None:
        wanted = [stages()[name] for name in up_to(settings.run.until, settings)]
    else:
        wanted = list(flow_of(settings).values())

    def due(stage: Stage) -> bool:
        return stage.has_more(directory.manifest["stages"], settings)

    with contextlib.ExitStack() as stack:
        compiling = early = None
        if any(map(due, wanted)):
            compiling = stack.enter_context(Compiling(job.progress, job.stop.check))
            early = stack.enter_context(Precompile(settings, job.progress, job.stop))
        for stage in wanted:
            if stage.every_invocation or due(stage):  # asked anew: a stage that runs again takes later ones along
                _run_stage(stage, job, early)
    if compiling is not None and early is not None:
        job.seconds["compiling"] = compiling.seconds + early.seconds
    if set(flow_of(settings)) - set(directory.manifest["stages"]):
        return None
    if outcome := complete(directory, settings):
        return outcome
    outcome = result.build(settings, directory)
    write_json(directory.path / "result.json", outcome, seal=True)
    return outcome


def _run_stage(stage: Stage, job: Job, early: Precompile | None = None) -> None:
    """Run one stage, once what it calls is compiled, and note in the manifest that it is done."""
    directory = job.dir
    start = time.monotonic()
    job.progress.stage(stage.name)
    if early is not None:
        early.wait_for(stage.name)
    work = contextlib.nullcontext() if stage.commits else job.stop.at_once()
    known = stage.name in directory.manifest["stages"]
    later = set(after(stage.name)) & set(directory.manifest["stages"])
    (directory.path / "result.json").unlink(missing_ok=True)
    if (known or later) and not stage.every_invocation:
        directory.forget(stage.name)
    with work:
        facts = stage.run(job)
    job.seconds[stage.name] = time.monotonic() - start
    if not (known and stage.every_invocation):
        directory.record(stage.name, **{"seconds": round(job.seconds[stage.name], 3), **facts})
    job.stop.check()


def _forget_damaged(job: Job) -> None:
    """Mark stages whose outputs have changed since, so that they run again from what is committed.

    What was said of a damaged output goes first: result.json, then what later stages made of it.
    """
    while (damage := job.dir.damaged()) is not None:
        name, changed = damage
        log.warning("%s: changed since stage %s wrote it; the stage runs again", job.dir.path / changed, name)
        (job.dir.path / "result.json").unlink(missing_ok=True)
        for other in reversed(after(name)):
            for output in stages()[other].outputs:
                if (job.dir.path / output).exists():
                    remove(job.dir.path / output)
        stage = stages().get(name)
        if stage is not None and stage.discard is not None:
            stage.discard(job)
        job.dir.forget(name)


def _export(settings: Settings, directory: RunDir, features: Location) -> None:
    """Export the results of the wanted stage, or of all stages of the run if none was named."""
    if settings.run.export is not None:
        from gapwise.pipeline.export import Export

        wanted = settings.run.until
        folder = Path(settings.run.export).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        for stage in flow().values() if wanted is None else [stages()[wanted]]:
            if stage.export is not None:
                stage.export(Export(directory.path, features, folder))


@functools.cache
def _wait(holder: str) -> None:
    print(f"waiting for this run, which {holder} works on", file=sys.stderr, flush=True)


def _print_summary(
    outcome: Mapping[str, object],
    directory: RunDir,
    tracking: TrackingOptions,
    seconds: Mapping[str, float] | None = None,
) -> int:
    width = min(shutil.get_terminal_size().columns, 120)
    solve = directory.manifest["stages"].get("solve", {})
    print(result.summary(outcome, directory.path, width, seconds or {}, solve, _places(directory, tracking)))
    return _print_directory(directory)


def _places(directory: RunDir, tracking: TrackingOptions) -> str:
    """Where runs lie and, if MLflow shows them, its store: the same for every kind of install."""
    root = directory.path.parent
    runs = f"runs in {root.resolve() if isinstance(root, Path) else root}"
    if tracking.kind == "none":
        return f"{runs} (run.root, $GAPWISE_RUNS)"
    return f"{runs} (run.root, $GAPWISE_RUNS) · MLflow in {shown_store(tracking)} (tracking.uri)"


def _print_directory(directory: RunDir) -> int:
    print(f"run: {directory.path}", flush=True)
    return DONE


def experiment_name() -> str | None:
    """The `+experiment=` of the command line."""
    from hydra.core.hydra_config import HydraConfig

    return HydraConfig.get().runtime.choices.get("experiment") if HydraConfig.initialized() else None


def given_words() -> list[str]:
    """The overrides of the command line, without those for Hydra."""
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def _hydra_files(cfg: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """The files that Hydra would have written into the run directory if it knew which one that is."""
    from hydra.core.hydra_config import HydraConfig

    files = {"config.yaml": OmegaConf.to_yaml(cfg)}
    if overrides:
        files["overrides.yaml"] = OmegaConf.to_yaml(list(overrides))
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        files["overrides.yaml"] = OmegaConf.to_yaml(given_words())
        files["hydra.yaml"] = OmegaConf.to_yaml(OmegaConf.create({"hydra": hydra}))
    return files
