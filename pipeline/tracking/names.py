"""What MLflow calls things: experiments, runs, parameters, the data set and the source, from a run's manifest."""

from __future__ import annotations

import json
from pathlib import Path

from gapwise.pipeline.config.settings import fingerprint
from gapwise.pipeline.rundir import read_json
from gapwise.records import Facts, flat
from gapwise.stages.solver.path.rules import path_rule, rules
from gapwise.storage.backend import Location
from gapwise.storage.files import listed

PATH = "path"
"""Part of an experiment's name, where the rule certifies a whole path; otherwise it is the rule."""
ELSEWHERE = ("tracking", "run.", "compute", "sweep.", "checkpoint.", "hydra")
"""Beginnings of overrides that change no number."""
COMMAND, MODULES = "python -m gapwise", ("gapwise", "pipeline")
"""How a command is shown, which works wherever Gapwise is installed; modules that it may have been started as."""
SHORTEST = 500
"""MLflow's database keeps this many characters of a parameter."""


def experiment_of(science: Facts, label: str | None = None) -> str:
    """Data set, its size if there are several, and task, e.g. `ocr-small-path`; of a sweep, what all its runs share.

    A label of the data (`dataset.label`) takes the place of data set and size.
    """
    given = flat(science)
    data = (label,) if label else (given.get("dataset.name"), given.get("dataset.size"))
    words = (*data, task_of(given.get("path.rule")))
    return "-".join(str(word) for word in words if word)


def task_of(rule: object) -> str:
    """What a run is about: a whole path, or the name of its rule; of a sweep over several, that it is one."""
    if rule is None:
        return "sweep"
    return PATH if rule in rules() and path_rule(str(rule)).certifies_path() else str(rule)


def run_name(manifest: Facts) -> str:
    """The seed, the solver, the rule and the fold, e.g. `seed 2 · bcpfw_gap_cache · paper`; MLflow cuts long names."""
    science = flat(manifest["science"])
    words = [f"seed {science['seed']}", manifest["solver"], str(science["path.rule"])]
    if "dataset.validation.fold" in science:
        words.append(f"fold {science['dataset.validation.fold'] + 1} of {science['dataset.validation.folds']}")
    return " · ".join(words)


def parameters(solver: str | None, science: Facts) -> dict[str, str]:
    """The choices that a run's numbers depend on, as text; MLflow's comparison hides those that are equal.

    Parameters
    ----------
    solver : str or None
        Name of the preset.
    science : mapping
        `Settings.science`, nested or flat.
    """
    given = {"solver": solver, **flat(science)}
    given["dataset"] = given.pop("dataset.name", None)
    return {name: str(value)[:SHORTEST] for name, value in given.items() if value is not None}


def source_tags(manifest: Facts, run_dir: Location) -> dict[str, str]:
    """MLflow's tags for where a run comes from: the command that makes it again, and the commit of the code."""
    tags = {"mlflow.source.name": command_of(manifest, run_dir), "mlflow.source.type": "JOB"}
    commit, dirty, _ = str(manifest.get("commit") or "").partition("-dirty")
    if commit:
        tags |= {"mlflow.source.git.commit": commit, "mlflow.source.git.dirty": "true" if dirty else "false"}
    return tags


def command_of(manifest: Facts, run_dir: Location) -> str:
    """The command of the run's first invocation, without what changes no number; a sweep's run has one of its own too."""
    from omegaconf import OmegaConf

    invocations = listed(run_dir / "invocations", "*/.hydra/overrides.yaml")
    if not invocations:
        return plain(manifest.get("command", ""))
    overrides = OmegaConf.create(invocations[0].read_text(encoding="utf-8"))
    said = [word for word in map(str, overrides) if not word.lstrip("+~").startswith(ELSEWHERE)]
    return " ".join([COMMAND, *said])


def plain(command: str) -> str:
    """A command without the path of the interpreter and its own options, however Gapwise was called."""
    words = command.split()
    ours = (
        k for k, word in enumerate(words) if (word in MODULES and words[k - 1] == "-m") or Path(word).name == "gapwise"
    )
    return " ".join([COMMAND, *words[next(ours, len(words)) + 1 :]])


def dataset_of(manifest: Facts, n: int, d: int) -> dict[str, str]:
    """The training data as MLflow's `Dataset` describes them: name, digest of the raw contents, where they are, sizes."""
    options, where = manifest["science"].get("dataset", {}), manifest.get("where") or {}
    source = where.get("root") or where.get("file") or options.get("oracle") or "made by the package"
    name = manifest.get("label") or "-".join(str(options[key]) for key in ("name", "size") if options.get(key))
    return {
        "name": name or "data",
        "digest": fingerprint({"dataset": options, "source": manifest.get("source", {})})[:8],
        "source_type": "local",
        "source": json.dumps({"uri": str(source)}),
        "profile": json.dumps({"num_rows": n, "features": d}),
    }


def note(run_dir: Location) -> str:
    """The run in words: the summary it ended with."""
    from gapwise.pipeline.result import summary

    result = read_json(run_dir / "result.json")
    return f"```\n{summary(result, run_dir)}\n```"


SWEEPS = "sweeps"
"""The experiment of sweeps, whose runs are in the experiments of their data sets."""
EXPERIMENT_NOTE = """\
One run is one row.

`best_test_loss`, `best_lambda`, `certified_gap`, `passes`, `oracle_calls` and `seconds` are one number a run. The steps of
curves mean the same in every run, so that runs overlay:

- `vs_lambda/…`, such as `vs_lambda/test_loss`, are read off the path at the same λ's in every run. **Step 1000 is λ = 1,
  and 100 steps are a factor of ten.** With the metric `vs_lambda/log10_lambda` as x-axis, the axis is log10 λ.
- `vs_passes/…` is what was reached after so much work. **A step is a hundredth of an effective pass**, oracle calls / n.
- `vs_solved/…` counts the λ's that were solved.
"""
"""The description of an experiment."""
SWEEPS_NOTE = """\
One row is one sweep: its table and figures. Its runs are rows of the experiments of their data sets, where the filter
"tags.`gapwise.sweep_name` = '…'" finds them.
"""
"""The description of the experiment of sweeps."""
