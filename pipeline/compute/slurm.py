"""Workers in Slurm jobs, started by dask-jobqueue: a scheduler in this process, one job per `slurm.cores` workers."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gapwise.pipeline.config.run_options import ComputeOptions

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster

LOOPBACK = "127.0.0.1:0"
"""Where web pages of scheduler and workers listen: anybody who reaches them can read what runs."""


def slurm_cluster(options: ComputeOptions) -> SLURMCluster:
    """The dask-jobqueue cluster of these options; no job is submitted yet."""
    from dask_jobqueue import SLURMCluster

    slurm = options.slurm
    return SLURMCluster(
        queue=slurm.queue,
        account=slurm.account,
        walltime=slurm.walltime,
        cores=slurm.cores,
        processes=slurm.cores,  # oracles in Python hold the GIL: one process per core
        memory=slurm.memory,
        interface=slurm.interface,
        job_name="gapwise",
        python=sys.executable,
        job_extra_directives=list(slurm.directives),
        job_script_prologue=["export OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1", *slurm.prologue],
        scheduler_options={"dashboard_address": LOOPBACK},
        worker_extra_args=["--no-dashboard", "--dashboard-address", LOOPBACK],  # the second for the pages that remain
    )


@contextlib.contextmanager
def started(options: ComputeOptions) -> Iterator[SLURMCluster]:
    """The cluster with its jobs submitted; they are cancelled at exit."""
    with slurm_cluster(options) as cluster:
        cluster.scale(jobs=math.ceil((options.workers or 1) / options.slurm.cores))
        yield cluster
