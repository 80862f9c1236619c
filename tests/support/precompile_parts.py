"""Stand-ins for `pipeline.precompile.compile_part`, found by name in the processes that run them."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection
from typing import Any


def at_once(part: tuple[str, ...], dataset: Any, options: Any, path: Any, said: Connection) -> None:
    with said:
        for stage in part:
            said.send(stage)


def dies(part: tuple[str, ...], dataset: Any, options: Any, path: Any, said: Connection) -> None:
    os._exit(3)


def never(part: tuple[str, ...], dataset: Any, options: Any, path: Any, said: Connection) -> None:
    time.sleep(600.0)
