"""One run, resumed wherever it stood, and its exit code.

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
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline import result
from pipeline.compute.local import Compute
from pipeline.config.run_options import ConfigError
from pipeline.config.settings import Settings, read
from pipeline.interrupt import Interrupted, Stop
from pipeline.progress import Progress
from pipeline.rundir import LockedError, RunDir, locked, read_json, write_json
from pipeline.stage_graph import GRAPH, Job, figures
from pipeline.tracking.mlflow import Tracker, open_tracker
from storage.files import DamagedError, remove
from storage.places import Place, place

DONE, FAILED, BAD_CONFIGURATION, INTERRUPTED = 0, 1, 2, 128
EXPECTED = ("CertificateError", "StateError", "WorkersDiedError")
"""Errors that say all there is to say, of modules that are not loaded here; with ValueError and OSError."""
log = logging.getLogger("gapwise")


def run(cfg: DictConfig, experiment: str | None = None, overrides: Sequence[str] = ()) -> int:
    """Do what the composed `cfg` says, as part of `experiment`; the exit code. `overrides` are for where Hydra is not.

    0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted.
    """
    from stages.datasets import DataError, open_dataset

    try:
        settings = read(cfg, experiment=experiment or experiment_name())
        source = open_dataset(settings.dataset["name"], settings.dataset).source()
    except DataError as error:
        return _refuse(error, FAILED)
    except (ConfigError, ValueError) as error:
        return _refuse(error, BAD_CONFIGURATION)
    except OSError as error:
        return _refuse(error, FAILED)
    directory, features, features_key = places(settings, source)
    tracker = open_tracker(settings.tracking, directory)
    try:
        found = complete(directory, settings) if settings.run.stage is None else None
        if found and settings.run.export is not None:
            directory.manifest = read_json(directory.path / "manifest.json")
            found = None if directory.damaged() else found  # a copy of what is damaged would look sound
        if found:
            tracker.mend()
            _export(settings, directory, features)
            return _say(found, directory)
        if settings.run.stage == "sync":
            return _sync(settings, directory, tracker)
        with locked(directory.path / "lock", _wait if settings.run.managed else None):
            directory.prepare(settings, source)
            with (
                directory.attempt(_hydra_files(cfg, overrides)) as attempt,
                Stop(with_parent=settings.run.managed) as stop,
                Progress(attempt / "pipeline.log") as progress,
                Compute(settings.compute, stop) as pool,
            ):
                job = Job(settings, directory, features, features_key, pool, progress, stop, tracker)
                return _guarded(job)
    except (LockedError, ValueError, OSError) as error:
        return _refuse(error, FAILED)
    except KeyboardInterrupt:  # while waiting for another process
        return INTERRUPTED + 2


def places(settings: Settings, source: Mapping[str, Any]) -> tuple[RunDir, Place, str]:
    """The run's directory, that of its features, and their key; nothing is made."""
    root = place(settings.run.root)
    name, key, features_key = settings.dataset["name"], settings.run_key(source), settings.features_key(source)
    directory = RunDir(root / f"{name}-{settings.solver.name}-{key[:8]}", key)
    return directory, root / "features" / f"{name}-{features_key[:8]}", features_key


def _guarded(job: Job) -> int:
    """The stages, with every way they can end turned into an exit code."""
    try:
        found = _stages(job)
        _export(job.settings, job.dir, job.features_path)
    except (Interrupted, KeyboardInterrupt) as end:
        signal = end.signal if isinstance(end, Interrupted) else 2
        log.warning("interrupted: what was committed is kept; the same command goes on from there")
        job.tracker.finish("KILLED")
        return INTERRUPTED + signal
    except Exception as error:
        log.debug("%s", traceback.format_exc())
        job.progress.close()
        if isinstance(error, (ValueError, OSError)) or type(error).__name__ in EXPECTED:
            _refuse(error, FAILED)
        else:
            traceback.print_exc()
        print(f"log: {job.progress.path}", file=sys.stderr)
        job.tracker.finish("FAILED")
        return FAILED
    job.progress.close()
    if found is None:
        print(f"run: {job.dir.path}")
        return DONE
    job.tracker.finish("FINISHED")
    return _say(found, job.dir)


def _stages(job: Job) -> dict[str, Any] | None:
    """Every stage that is still to be done; result.json's content once all are."""
    only = job.settings.run.stage
    _drop_damaged(job)
    done = job.dir.manifest["stages"]
    if only == "figures":
        figures(job)
        return None
    for name, stage in GRAPH.items():
        if only is not None and name != only:
            if name not in done and list(GRAPH).index(name) < list(GRAPH).index(only):
                raise ValueError(f"run.stage={only}: stage {name} has to be done first (run.stage={name})")
            continue
        if name != "featurize" and name in done and not _more_time(done[name], job.settings):
            if name == job.settings.run.until:
                break
            continue
        (job.dir.path / "result.json").unlink(missing_ok=True)
        if name in done and name != "featurize":
            job.dir.forget(name)
        start = time.monotonic()
        job.progress.stage(name)
        facts = stage(job)
        if name != "featurize" or name not in done:
            job.dir.record(name, seconds=round(time.monotonic() - start, 3), **facts)
            done = job.dir.manifest["stages"]
        job.stop.check()
        if name == job.settings.run.until:
            break
    if set(GRAPH) - set(done):
        return None
    if found := complete(job.dir, job.settings):
        return found
    found = result.build(job.settings, job.dir)
    write_json(job.dir.path / "result.json", found)
    return found


def _sync(settings: Settings, directory: RunDir, tracker: Tracker) -> int:
    """Show in MLflow what the run directory holds, as if that had never been done."""
    if settings.tracking.kind == "none":
        return _refuse(ConfigError("run.stage: sync has nothing to do with tracking=none"), BAD_CONFIGURATION)
    if not (directory.path / "manifest.json").is_file():
        raise FileNotFoundError(f"{directory.path}: there is no such run yet; run.stage=sync only shows what is there")
    with locked(directory.path / "lock"):
        tracker.sync("FINISHED" if complete(directory, settings) else "KILLED")
    print(f"run: {directory.path}")
    return DONE


def _drop_damaged(job: Job) -> None:
    """What a stage left and is no longer that is made again, from what is committed; ValueError for features elsewhere."""
    stage = job.dir.damaged()
    if stage == "solve":
        for name in ("path.zarr", *(("state",) if job.settings.snapshots.every_passes else ())):  # their parts are gone
            with contextlib.suppress(OSError):
                remove(job.dir.path / name)
    if stage is not None:
        job.dir.forget(stage)
    if job.settings.run.stage not in (None, "featurize"):
        from stages.featurize import damaged

        if damage := damaged(job.features_path):
            raise ValueError(f"{job.features_path}: {damage}; run.stage=featurize makes the features again")


def complete(directory: RunDir, settings: Settings) -> dict[str, Any] | None:
    """result.json of a run with nothing left to do; one that is damaged is made again."""
    try:
        found = read_json(directory.path / "result.json")
        manifest = read_json(directory.path / "manifest.json") or {"stages": {}}
    except DamagedError as error:
        log.warning("%s", error)
        return None
    if found is None or found.get("key") != directory.key or found.get("format_version") != result.FORMAT_VERSION:
        return None
    return None if _more_time(manifest["stages"].get("solve", {}), settings) else found


def _more_time(solved: Mapping[str, Any], settings: Settings) -> bool:
    """Whether a solve that ran out of time has been given more."""
    return solved.get("status") == "TIME_LIMIT" and settings.solver.max_seconds > float(solved["max_seconds"])


def _export(settings: Settings, directory: RunDir, features: Place) -> None:
    """Hand over what the wanted stage left; all stages, if none was named."""
    if settings.run.export is not None:
        from pipeline.export import export

        wanted = settings.run.stage or settings.run.until
        stages = [name for name in GRAPH if wanted in (None, name)]
        export(stages, directory.path, features, Path(settings.run.export))


@functools.cache
def _wait(holder: str) -> None:
    print(f"waiting for this run, which {holder} works on", file=sys.stderr, flush=True)


def _say(found: Mapping[str, Any], directory: RunDir) -> int:
    print(result.summary(found, directory.path, width=min(shutil.get_terminal_size().columns, 120)))
    print(f"run: {directory.path}", flush=True)
    return DONE


def _refuse(error: Exception, code: int) -> int:
    text = " ".join(str(error).split()) or type(error).__name__
    print(f"error: {text}", file=sys.stderr)
    return code


def experiment_name() -> str | None:
    """The `+experiment=` of the command line."""
    from hydra.core.hydra_config import HydraConfig

    return HydraConfig.get().runtime.choices.get("experiment") if HydraConfig.initialized() else None


def _hydra_files(cfg: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """What Hydra would have written into the run directory, had it known which one that is."""
    from hydra.core.hydra_config import HydraConfig

    files = {"config.yaml": OmegaConf.to_yaml(cfg)}
    if overrides:
        files["overrides.yaml"] = OmegaConf.to_yaml(list(overrides))
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        files["overrides.yaml"] = OmegaConf.to_yaml(hydra.overrides.task)
        files["hydra.yaml"] = OmegaConf.to_yaml(OmegaConf.create({"hydra": hydra}))
    return files
