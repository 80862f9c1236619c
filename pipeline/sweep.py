"""A sweep: many ordinary runs over a bounded number of dask worker processes, a table, and figures over all of them.

Every run lies in its own run directory and resumes singly: a sweep that was killed, issued again, skips what is complete
and goes on with what is not. A run that fails, or whose worker dies again and again, does not stop the others. Where a
sweep lies, `<run.root>/sweeps/<experiment>-<key>`, depends on the science of its runs only.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipeline.compute import Compute, pin_threads
from pipeline.config import ConfigError, Settings, default_workers, fingerprint, read
from pipeline.graph import make_features
from pipeline.plan import Planned, SweepOptions, plan, sweep_options
from pipeline.run import BAD_CONFIGURATION, DONE, FAILED, INTERRUPTED, experiment_name, places, run
from pipeline.rundir import LockedError, locked, read_json, write_json

FORMAT_VERSION = 1
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
DEATHS = 2
"""Worker deaths a run survives before it counts as failed."""


def sweep(cfg: DictConfig) -> int:
    """All runs of the experiment that `cfg` describes; the exit code: 0, or 1 if any failed, 2 for a bad configuration."""
    from stages.datasets import DataError, open_dataset

    experiment = experiment_name() or "sweep"
    try:
        options = sweep_options(cfg)
        base = read(cfg, experiment=experiment)
        if base.run.export is not None:
            raise ConfigError(
                "run.export: is of one run, and this is a sweep of many (DVC: dvc exp run --queue -S 'seed=1,2')"
            )
        source = open_dataset(base.dataset["name"], base.dataset).source()
        jobs = plan(options, _given(), _compose, _blocks(base, source), experiment)
    except (DataError, OSError) as error:
        return _refuse(error, FAILED)
    except (ConfigError, ValueError) as error:
        return _refuse(error, BAD_CONFIGURATION)
    root = Path(base.run.root).expanduser().resolve()
    key = fingerprint({"format": FORMAT_VERSION, "source": source, "runs": [job.settings.science for job in jobs]})
    folder = root / "sweeps" / f"{experiment}-{key[:8]}"
    try:
        with locked(folder / "lock"):
            return _sweep(options, experiment, key, jobs, source, folder)
    except (LockedError, OSError) as error:
        return _refuse(error, FAILED)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from what its runs have committed", file=sys.stderr)
        return INTERRUPTED + 2


def _sweep(
    options: SweepOptions, experiment: str, key: str, jobs: list[Planned], source: Mapping[str, Any], folder: Path
) -> int:
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for job in jobs:
        directory = places(job.settings, source)[0].path
        rows.append(
            {"variant": job.variant, "lambda": job.lam, "seed": job.seed, "run": str(directory), "status": "",
             "seconds": 0.0, "error": ""}
        )  # fmt: skip
    todo = []
    for number, job in enumerate(jobs):
        if _complete(Path(rows[number]["run"]), job.settings):
            rows[number]["status"] = "complete"
        else:
            todo.append(number)
    workers = min(options.workers or default_workers(), max(len(todo), 1))
    print(f"sweep: {len(jobs)} runs, {len(jobs) - len(todo)} complete; {workers} workers", file=sys.stderr)

    def done(number: int, found: Mapping[str, Any]) -> None:
        rows[number].update(found)
        left = sum(not row["status"] for row in rows)
        words = f"{rows[number]['seconds']:.1f} s" if found["status"] == "done" else f"FAILED: {found['error']}"
        print(f"{len(rows) - left}/{len(rows)} {jobs[number].name} · {words}", file=sys.stderr, flush=True)

    if todo:
        _run_all([(number, jobs[number].config, experiment) for number in todo], workers, folder, done)
    failed = [row for row in rows if row["status"] == "failed"]
    good = [(job, Path(row["run"])) for job, row in zip(jobs, rows, strict=True) if row["status"] != "failed"]
    found: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "key": key,
        "experiment": experiment,
        "figure": options.figure,
        "runs": len(rows),
        "failed": len(failed),
        "jobs": rows,
    }
    try:
        from stages.comparison import compare

        of_runs = [(job.variant, job.lam, job.seed, place) for job, place in good]
        found |= compare(options.figure, of_runs, folder) if of_runs else {}
    except (ValueError, OSError, KeyError) as error:
        failed.append({})
        print(f"error: figures: {error}", file=sys.stderr)
    write_json(folder / "summary.json", found)
    _write_table(folder / "runs.csv", rows)
    print(_table(found, time.monotonic() - started))
    print(f"sweep: {folder}", flush=True)
    return FAILED if failed else DONE


def _run_all(
    jobs: list[tuple[int, dict[str, Any], str]], workers: int, folder: Path, done: Callable[[int, dict[str, Any]], None]
) -> None:
    """Every (number, configuration, experiment) on worker processes of a dask cluster of this machine."""
    import dask
    from distributed import Client, LocalCluster, as_completed

    pinned = dict.fromkeys(THREADS, "1")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.nanny.pre-spawn-environ": pinned,
        "distributed.worker.daemon": True,
        "distributed.admin.tick.limit": "10m",
        "distributed.comm.timeouts.tcp": "300s",
        "distributed.scheduler.worker-ttl": None,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, memory_limit=0, dashboard_address=":0",
            local_directory=str(folder / "workers"), silence_logs=50, env=pinned,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        numbers = {}
        for priority, (number, config, experiment) in enumerate(jobs):
            future = client.submit(one_run, config, experiment, pure=False, priority=-priority, retries=0)
            numbers[future.key] = number
            numbers[future] = number
        futures = [future for future in numbers if not isinstance(future, str)]
        for future in as_completed(futures):
            if future.status == "finished":
                found = future.result()
            else:
                error = future.exception()
                text = f"its worker died {DEATHS + 1} times" if type(error).__name__ == "KilledWorker" else str(error)
                found = {"status": "failed", "error": " ".join(text.split()) or type(error).__name__}
            done(numbers[future.key], found)


def one_run(config: dict[str, Any], experiment: str) -> dict[str, Any]:
    """One run in a worker process: its status, seconds and, in a line, what went wrong."""
    pin_threads()
    started = time.monotonic()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = run(OmegaConf.create(config), experiment)
    seconds = round(time.monotonic() - started, 3)
    if code == DONE:
        return {"status": "done", "seconds": seconds}
    lines = [line for line in said.getvalue().splitlines() if line.strip() and not line.startswith("log: ")]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")] or lines
    return {"status": "failed", "seconds": seconds, "error": errors[-1] if errors else f"exit code {code}"}


def _complete(directory: Path, settings: Settings) -> bool:
    """Whether the last stage that is wanted is done."""
    if settings.run.until is None:
        return (directory / "result.json").is_file()
    with contextlib.suppress(ValueError):
        manifest = read_json(directory / "manifest.json")
        return manifest is not None and settings.run.until in manifest["stages"]
    return False


def _blocks(settings: Settings, source: Mapping[str, Any]) -> int:
    """Training blocks; makes the features, once for all runs, if they are not there."""
    from stages.featurize import open_problem

    _, features, key = places(settings, source)
    with Compute(settings.compute) as compute:
        make_features(settings.dataset, features, key, compute, lambda done, total, what: None)
    return int(open_problem(features, "train").n)


def _given() -> list[str]:
    from hydra.core.hydra_config import HydraConfig

    return list(HydraConfig.get().overrides.task)


def _compose(overrides: list[str]) -> DictConfig:
    from hydra import compose

    return compose("config", overrides)


def _table(found: Mapping[str, Any], seconds: float) -> str:
    """All runs, a line each, and what the comparison says."""
    lines = ["─" * 88]
    for row in found["jobs"]:
        what = f"{row['seconds']:.1f} s" if row["status"] != "failed" else f"FAILED: {row['error']}"
        what = "complete" if row["status"] == "complete" else what
        lines.append(f"{row['variant']:<20} {row['lambda']:>8} {row['seed']:>3}  {Path(row['run']).name}  {what}")
    lines.append("─" * 88)
    lines += [str(line) for line in found.get("text", ())]
    lines.append(
        f"{found['runs'] - found['failed']} of {found['runs']} runs done in {seconds:.0f} s; look at figures/*.png"
    )
    return "\n".join(lines)


def _write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    tmp = path.with_name(f".tmp-{path.name}")
    with tmp.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    os.replace(tmp, path)


def _refuse(error: Exception, code: int) -> int:
    print(f"error: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    return code
