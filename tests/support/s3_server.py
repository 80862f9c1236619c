"""An S3-compatible server on localhost, in a separate process: moto's, on a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BUCKET = "gapwise-test"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """URL of a bucket; the environment of this process and of those it starts names the server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "server.log").open("w") as log, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(port, server)
            from fsspec.core import url_to_fs

            fs, _ = url_to_fs(f"s3://{BUCKET}")
            fs.mkdir(BUCKET)
            yield f"s3://{BUCKET}"
        finally:
            server.terminate()
            server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert server.poll() is None, "the S3 server ended"
            assert time.monotonic() < end, "the S3 server does not answer"
            time.sleep(0.05)
