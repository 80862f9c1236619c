"""``--why``: what a command would run and reuse, and in which keys it differs from the nearest run there is."""

from __future__ import annotations

import json
from collections.abc import Mapping

from omegaconf import DictConfig

from gapwise.pipeline.config.settings import read
from gapwise.pipeline.errors import DONE, refuse_setup
from gapwise.pipeline.overview.find import folders
from gapwise.pipeline.overview.run_state import RunState, run_state
from gapwise.pipeline.overview.tables import as_json, number
from gapwise.pipeline.run import experiment_name, given_words, locations
from gapwise.pipeline.stage_graph import flow_of
from gapwise.records import Facts, flat


def why(cfg: DictConfig) -> int:
    """Explain the run that `cfg` configures, without starting it; returns the exit code."""
    from gapwise.pipeline.data import source_of

    try:
        settings = read(cfg, experiment=experiment_name(), overrides=given_words())
        source = source_of(settings)
    except (ValueError, OSError) as error:
        return refuse_setup(error)
    directory, features, _ = locations(settings, source)
    root = directory.path.parent
    here = run_state(directory.path)
    done = here.stages if here.manifest.get("key") == directory.key else {}
    left = [name for name in flow_of(settings) if name not in done]
    made = f"features: {'reused' if features.is_dir() else 'made'}: {features}"
    if done or here.state not in ("foreign", "damaged"):
        out = [f"this run is there, {here.state}: it would {'do ' + ', '.join(left) if left else 'be shown'}", made]
    else:
        out = [f"a new run, which would do {', '.join(left)}", made]
        mine = key_of(json.loads(as_json(settings.science)), source)
        others = [run_state(path) for path in (folders(root) if root.is_dir() else [])]
        near = min((run for run in others if run.manifest), key=lambda run: len(differing(mine, run)), default=None)
        if near is None:
            out.append(f"no other run in {root}")
        else:
            keys = differing(mine, near)
            said = "it differs in" if keys else "an earlier version made it, and this one would begin anew beside it"
            out.append(f"nearest run: {near.run.name}, {near.state}; {said}")
            out += [f"  {key}: {number(b)} there, {number(a)} here" for key, (a, b) in keys.items()]
    print("\n".join([*out, f"run: {directory.path}"]), flush=True)
    return DONE


def key_of(science: Mapping[str, object], source: Mapping[str, object]) -> Facts:
    """All that a run's key is made of, flat."""
    return {**flat(science), **{f"data.{name}": value for name, value in flat(source).items()}}


def differing(mine: Facts, run: RunState) -> dict[str, tuple[object, object]]:
    """The values here and there of the keys in which `run` differs."""
    theirs = key_of(run.manifest.get("science", {}), run.manifest.get("source", {}))
    names = [*mine, *(name for name in theirs if name not in mine)]
    return {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}
