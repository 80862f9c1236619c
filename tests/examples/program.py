"""An oracle in another language: this class asks a program, one line of JSON to its input and one line back.

The program may be anything that reads lines and writes lines; `bits.py` is one. Each process of a run starts its own for
each split, and a program ends when its input does. One that dies ends the run with an error that names method and block,
and the same command resumes it. `data` names the files that it reads: an edit of one makes a new run.

    PYTHONPATH=tests/examples gapwise dataset=python_oracle dataset.oracle=program:Program compute=processes \\
        +dataset.arguments.command="'python tests/examples/bits.py bits'" \\
        +dataset.arguments.data=[bits/train.txt,bits/test.txt]
"""

import contextlib
import json
import shlex
import subprocess
import threading
import weakref

from gapwise import Oracle


class Program(Oracle):
    """The blocks of one split, as a program knows them."""

    def __init__(self, split, command, data=()):
        self.command, self.turn = command, threading.Lock()  # several threads may ask at once
        self.program = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        weakref.finalize(self, self.program.communicate)  # its input ends
        self.n, self.d, self.labels = self.ask("sizes", split=split)

    def ask(self, question, **about):
        with self.turn:
            with contextlib.suppress(BrokenPipeError):  # it has ended, as the next line sees
                self.program.stdin.write(json.dumps({"ask": question, **about}) + "\n")
            line = self.program.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command}: ended with {self.program.wait()}")
        return json.loads(line)

    @classmethod
    def files(cls, command, data=()):
        return data

    def __len__(self):
        return self.n

    def truth(self, i):
        return self.ask("truth", block=int(i))

    def features(self, i, y):
        return self.ask("features", block=int(i), y=y.tolist())

    def loss(self, i, y):
        return self.ask("loss", block=int(i), y=y.tolist())

    def least_loss(self, i):
        return self.ask("least_loss", block=int(i))

    def max_oracle(self, i, theta):
        return self.ask("max_oracle", block=int(i), theta=theta.tolist())

    def decode(self, i, theta):
        return self.ask("decode", block=int(i), theta=theta.tolist())
