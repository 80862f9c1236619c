"""Stand-ins for `pipeline.precompile.compile_all`, found by name in the processes that run them."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from typing import Any

from gapwise.pipeline.precompile import STAGES


def at_once(dataset: Any, options: Any, path: Any, said: Connection) -> None:
    with said:
        for stage in STAGES:
            said.send(stage)


def dies(dataset: Any, options: Any, path: Any, said: Connection) -> None:
    os._exit(3)


def never(dataset: Any, options: Any, path: Any, said: Connection) -> None:
    time.sleep(600.0)
