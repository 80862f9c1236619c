"""Servers on loopback, in processes of their own: moto's, which speaks S3, and MLflow's."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_for

BUCKET = "gapwise-test"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Server:
    """Context manager around `python -m` with the words of a module. It can be stopped and started again.

    Parameters
    ----------
    folder : Path
        Its current directory, which gets its log.
    port : int
        Where it listens once it is ready.
    """

    def __init__(self, folder: Path, port: int, *words: str, **env: str) -> None:
        self.folder, self.port, self.words, self.env = folder, port, words, env
        self.address = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when the server accepts connections."""
        with (self.folder / "server.log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *self.words], cwd=self.folder, env={**os.environ, **self.env},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(self._answers, self.process, 120.0, every=0.1)

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True
        return False

    def stop(self) -> None:
        """Kill the server and its workers, as if its machine were gone."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait()


def mlflow_server(folder: Path) -> Server:
    """MLflow's own server of the database `mlflow.db` in a folder."""
    port = free_port()
    store = (
        "--backend-store-uri",
        f"sqlite:///{folder / 'mlflow.db'}",
        "--artifacts-destination",
        f"{folder}/artifacts",
    )
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    return Server(folder, port, "mlflow", "server", *store, "--workers", "1", "--port", str(port), **quiet)


@contextlib.contextmanager
def bucket(folder: Path) -> Iterator[str]:
    """URL of a bucket of an S3 server; the environment of this process and of those it starts names the server."""
    port = free_port()
    with (
        Server(folder, port, "moto.server", "-H", "127.0.0.1", "-p", str(port)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", server.address)
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        from fsspec.core import url_to_fs

        url_to_fs(f"s3://{BUCKET}")[0].mkdir(BUCKET)
        yield f"s3://{BUCKET}"
