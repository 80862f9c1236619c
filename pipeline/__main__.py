"""Entry point: `python -m pipeline +experiment=regpath_horseseg`. Hydra composes; `pipeline.run` does the rest."""

from __future__ import annotations

import os
import sys

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pipeline.compute.local import pin_threads
from pipeline.config.settings import CONF, explain
from pipeline.errors import INTERRUPTED
from pipeline.run import run
from pipeline.sweep.plan import Asked, has_variants, job_of_multirun
from pipeline.sweep.run import multirun, sweep

_codes: list[int] = []
_asked: list[Asked] = []


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _job(cfg: DictConfig) -> None:
    if any(code >= INTERRUPTED for code in _codes):
        return  # an interrupted sweep starts no more
    if has_variants(cfg):
        _codes.append(sweep(cfg))
    elif (job := job_of_multirun(cfg)) is not None:
        _asked.append(job)  # all of them together, once all are known to compose
    else:
        _codes.append(run(cfg))


def main() -> int:
    """Exit code: 0 done, 1 failed, 2 bad configuration, 130 or 143 interrupted; of a multirun the largest."""
    pin_threads()
    if "DVC_STAGE" in os.environ:
        os.environ.setdefault("NUMBA_CACHE_LOCATOR_CLASSES", "pipeline.compute.kernel_cache.ByContent")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come here, to be said in one line
    sys.argv[1:] = sorted(sys.argv[1:], key=lambda word: word not in ("-m", "--multirun"))  # wherever it was written
    try:
        _job()
        if _asked:
            _codes.append(multirun(_asked))
    except (HydraException, OmegaConfBaseException) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
        return 2
    return max(_codes, default=0)


if __name__ == "__main__":
    sys.exit(main())
