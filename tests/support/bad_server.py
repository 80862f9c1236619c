"""The example of an oracle server, made to misbehave: ``python bad_server.py HOW FOLDER EXAMPLES``. An object of JSON as HOW
is added to its greeting."""

from __future__ import annotations

import json
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
    if how == "greets differently" and answered == 1 and os.path.exists(f"{folder}/started"):
        line = line.replace('"d": 2', '"d": 3')
    if answered == 2:
        open(f"{folder}/started", "w").close()
        if how in ("always dies", "greets differently"):
            print("out of memory", file=sys.stderr)
            sys.exit(7)
        if how == "silent":
            time.sleep(60)
        line = {
            "babbles": "reading data ...",
            "list": "[1, 2]",
            "no answer": '{"labels": [1]}',
            "error": '{"error": "no such block"}',
            "float": '{"answer": [0.5, 1, 0]}',
            "NaN": '{"answer": NaN}',
        }.get(how, line)
    if how.startswith("{") and answered == 1:
        line = json.dumps({**json.loads(line), **json.loads(how)})
    if how == "no sizes" and answered == 1:
        line = json.dumps({"blocks": 3})
    print(line, flush=flush)


oracle_server.main(folder, reply)
