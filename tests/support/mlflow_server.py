"""MLflow's own server on loopback, for tests; one process and its worker, killed at the end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


class MlflowServer:
    """Context manager: the server of the database `mlflow.db` in a folder. It can be stopped and started again.

    Attributes
    ----------
    address : str
        The same after another start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MlflowServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the server answers."""
        env = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        command = [
            sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{self.folder / 'mlflow.db'}",
            "--artifacts-destination", str(self.folder / "artifacts"), "--workers", "1", "--port", self.port,
        ]  # fmt: skip
        log = self.folder / "server.log"
        with log.open("w") as out:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=out, stderr=out, start_new_session=True
            )
        end = time.monotonic() + 120.0
        while not self._answers():
            assert self.process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/health", timeout=5.0):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """Kill the server and its worker, as if its machine were gone."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()
