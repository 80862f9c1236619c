"""What a run needs besides its configuration and data, checked before it writes anything."""

from __future__ import annotations

import re
import socket
from importlib.util import find_spec

from gapwise.pipeline.config.run_options import ComputeOptions, ConfigError, TrackingOptions

ANSWER_SECONDS = 4.0
"""How long a scheduler may take to accept a connection."""


def check_packages(tracking: TrackingOptions) -> None:
    """Raise ConfigError, which says what to install, if a choice needs a package that is not there."""
    if tracking.kind == "mlflow" and find_spec("mlflow") is None:
        raise ConfigError("tracking=mlflow: mlflow is not installed; pip install mlflow, or choose tracking=none")


def check_scheduler(compute: ComputeOptions) -> None:
    """Raise OSError if nothing accepts connections at `compute.address` (of compute=cluster)."""
    match = re.fullmatch(r"(?:tcp|tls|ws|wss)://(.+):(\d+)/?", compute.address or "")
    if compute.kind != "cluster" or match is None:
        return
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), timeout=ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise OSError(
            f"compute.address: no scheduler answers at {compute.address} ({error}); start one with `dask scheduler` and "
            "give the address it prints"
        ) from None
