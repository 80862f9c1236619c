"""What earlier versions had, and what to do instead: keys, values, presets and commands that are refused with a hint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gapwise.pipeline.errors import ConfigError

PARTS = "parts of your own are datasets and problems; other kinds are files of the repository"
KINDS = ("backends", "certify", "charts", "commands", "estimators", "methods", "model_formats", "papers", "rules",
         "run_figures", "sections", "stages", "sweep_figures")  # fmt: skip
"""Folders that held other kinds."""
SLURM = "start `dask scheduler`, and `dask worker ADDRESS` in jobs; then compute=cluster compute.address=ADDRESS"
REMOVED = {
    # commands
    "completion": "gapwise --help lists commands, and gapwise ls runs",
    "status": "gapwise ls --state running",
    "show": "gapwise ls RUN",
    "weights": "gapwise explain RUN_OR_MODEL without input shows weights by name",
    "diff": "gapwise ls names the keys in which runs differ, MLflow compares their numbers, and --why finds the nearest run",
    # folders of parts of your own
    **{f"parts/{kind}": PARTS for kind in KINDS},
    # the group solver
    "solver.method=accelerated_at_mean": "use solver=expensive_oracle, or method=accelerated with exact_passes=at_mean",
    "solver.acceleration": "leave it out: other numbers gained nothing (stages/solver/catalyst.py)",
    "solver.at_mean": "leave it out: other numbers gained nothing (stages/solver/at_mean.py)",
    "solver=cutting_plane_nslack": "use solver=cutting_plane, which has one slack, or solver=accelerated",
    "solver.method=cutting_plane_nslack": "use cutting_plane, which has one slack, or accelerated",
    "solver.cutting_plane.unused_iterations": "planes without weight for 50 iterations are dropped",
    "solver.cutting_plane.quadratic_variables": "it was of cutting_plane_nslack; use solver=cutting_plane or accelerated",
    "solver.cutting_plane.accuracy": "it was of cutting_plane_nslack; use solver=cutting_plane or accelerated",
    "solver=fasole": "solver=accelerated takes an eighth of the time",
    "solver.method=fasole": "use accelerated, which takes an eighth of the time",
    "solver.method=bcfw_nols": "use solver=bcfw solver.line_search=false",
    "solver.batch_step": "solver=fw moves all blocks at once; otherwise leave it out",
    "solver.project": "leave it out: ssg makes no projections",
    "solver.growth": "leave it out: step sizes of eg grow by a twentieth",
    "solver.eta": "leave it out: the first step size of eg is 10, and is halved where the dual would fall",
    "solver.truth": "leave it out: at the start of eg a labelling weighs exp(-15) times as much for each wrong entry",
    "solver=bcfw_cache": "use solver=bcfw solver.cache.kind=gap",
    "solver=bcfw_permutation": "use solver=bcfw solver.sampling=permutation",
    "solver=bcfw_permutation_cache": "use solver=bcfw solver.sampling=permutation solver.cache.kind=gap",
    "solver=bcpfw_cache": "use solver=bcpfw solver.cache.kind=gap",
    "solver=bcpfw_permutation": "use solver=bcpfw solver.sampling=permutation",
    "solver=bcpfw_permutation_cache": "use solver=bcpfw solver.sampling=permutation solver.cache.kind=gap",
    "solver=bcafw": "use solver=bcfw solver.step=away",
    "solver=bcafw_cache": "use solver=bcfw solver.step=away solver.cache.kind=gap",
    "solver=bcafw_gap": "use solver=bcfw_gap solver.step=away",
    "solver=bcafw_gap_cache": "use solver=bcfw_gap_cache solver.step=away",
    "solver=bcafw_permutation": "use solver=bcfw solver.step=away solver.sampling=permutation",
    "solver=bcafw_permutation_cache": "use solver=bcfw solver.step=away solver.sampling=permutation solver.cache.kind=gap",
    "solver=bcbfw": "use solver=bcfw solver.step=best",
    "solver=bcbfw_cache": "use solver=bcfw solver.step=best solver.cache.kind=gap",
    "solver=bcbfw_gap": "use solver=bcfw_gap solver.step=best",
    "solver=bcbfw_gap_cache": "use solver=bcfw_gap_cache solver.step=best",
    "solver=bcbfw_permutation": "use solver=bcfw solver.step=best solver.sampling=permutation",
    "solver=bcbfw_permutation_cache": "use solver=bcfw solver.step=best solver.sampling=permutation solver.cache.kind=gap",
    "solver=fw_fixed_step": "use solver=fw solver.line_search=false",
    "solver=ssg_wavg": "use solver=ssg solver.averaging=weighted",
    "solver=bcfw_nols": "use solver=bcfw solver.line_search=false",
    # the group dataset
    "dataset=oracle_server": "use dataset=python_oracle with tests/examples/program.py, an Oracle that asks a program",
    "dataset.hash_bits": "leave it out: a vocabulary is stored; dataset.min_count=2 makes it smaller",
    "dataset.precision": "leave it out: features are stored as 32-bit floats",
    "dataset.features=pictures": "dataset=stanford reads the release's features; dataset=images reads pictures of your own",
    "dataset.classes=8": "leave it out: dataset=msrc has the 21 classes of its second release",
    "dataset.maps": "use dataset=tree_maps, which reads score maps of your own",
    # experiments
    "experiment=papers": "python tests/benchmarks/papers FOLDER runs the parts and makes the page",
    "experiment=practice": "python tests/benchmarks/practice FOLDER makes the comparison",
    "solver.batch_size": "leave the key out; solver=expensive_oracle asks all oracles of a pass side by side",
    "solver=mpbcfw_inner": "take solver=mpbcpfw, ten pairwise steps a visit, or solver=mpbcfw solver.multiplane.rounds=10",
    "solver.multiplane.costs": "leave the key out; costs are counted",
    "solver.multiplane.oracle_seconds": "leave the key out; a structure may declare its `oracle_cost`",
    "solver.multiplane.plane_seconds": "leave the key out; a structure may declare its `oracle_cost`",
    "solver.averaging=recent": "take weighted or two_track; accelerated needs fewer passes than any average",
    # the group compute
    "compute=slurm": SLURM,
    "compute.kind=slurm": SLURM,
    "compute.slurm": SLURM,
    # the group run
    "run.stage": "run.until=STAGE does what is missing up to a stage; gapwise report RUN and gapwise sync RUN repeat these",
    # the group tracking
    "tracking.children": "leave it out; the curves vs_solved/… of a run in MLflow have a step for each λ",
    # the group sweep
    "sweep.seeds": "write the values with commas, as seed=0,1,2",
    "sweep.lambdas": "write the values with commas, as path.lambda=0.1,1/n",
    "sweep.tolerances": "write the values with commas, as path.tolerance=1e-2,1e-3",
    "sweep.passes": "use solver.max_passes",
    "sweep.seconds": "use solver.max_seconds",
    "sweep.rebase_passes": "use snapshots.rebase_passes",
    "sweep.paths": "use sweep.variants, whose words may fix seed, path.lambda and path.tolerance",
    # the group path
    "path.descend": "path=heuristic takes the steps of path.rule=paper, as in O16; leave it out",
    "path.rule=one_sided": "path.rule=two_sided takes fewer passes",
    "path.parallel": "the workers of compute share the oracle calls of each λ; leave it out",
    "path.kind": "for regpath write nothing, for the others path=heuristic, path=grid or path=single",
}
"""What to do instead, by command, key (``path.kind``), value (``solver.method=eg``) or preset (``solver=eg``).

Values are written as in YAML: ``true``, ``false``.
"""


def hint(name: str) -> str | None:
    """One line for a name that is gone, to be printed or raised; None for other names."""
    return f"{name}: was removed; {REMOVED[name]}" if name in REMOVED else None


def check_parts(folder: Path) -> None:
    """ConfigError if a folder with parts of one's own has some of a kind that is gone."""
    for kind in sorted(folder.iterdir()):
        if says := hint(f"parts/{kind.name}"):
            raise ConfigError(says)


def check_removed(values: Mapping[str, object], section: str = "") -> None:
    """ConfigError for the first of `values` that is gone, by its key or by its value.

    Parameters
    ----------
    values : mapping
        A composed configuration, or one of its groups; groups inside it are looked through.
    section : str
        The key of that group.
    """
    for name, value in values.items():
        key = f"{section}.{name}" if section else str(name)
        if isinstance(value, Mapping):
            check_removed(value, key)
            continue
        word = str(value).lower() if isinstance(value, bool) else str(value)
        if says := hint(key) or hint(f"{key}={word}"):
            raise ConfigError(says)
