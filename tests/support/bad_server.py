"""The example of an oracle server, made to misbehave: ``python bad_server.py HOW FOLDER EXAMPLES``."""

from __future__ import annotations

import os
import signal
import sys
import time

how, folder, examples = sys.argv[1:4]
sys.path.insert(0, examples)
import oracle_server  # noqa: E402

answered = 0


def reply(line: str, flush: bool) -> None:
    global answered
    answered += 1
    if how == "dies" and answered % 40 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if answered == 2:
        if how == "always dies":
            print("out of memory", file=sys.stderr)
            sys.exit(7)
        if how == "silent":
            time.sleep(60)
        line = {"babbles": "reading data ...", "float": '{"answer": [0.5, 1, 0]}'}.get(how, line)
    print(line, flush=flush)


oracle_server.main(folder, reply)
