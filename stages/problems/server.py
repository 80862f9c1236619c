"""A program that answers questions: one line of JSON to its standard input, one line back from its standard output.

The program is started at the first question. If it dies or does not answer in time it is killed and started again, and the
question is put to it once more, `TRIES` times in all; the log says how often. What is no answer, a second line, or an
answer about another block, is an error at once. It is given its own session, so that Ctrl-C reaches only the process that
asks, and ends when its input does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import shlex
import subprocess
import tempfile
import threading
import time
import weakref
from typing import IO, NoReturn

from gapwise.records import Facts, Record
from gapwise.stages.problems.trust import permit

TRIES = 3
"""Most programs that are started for a question, one after the other, before it fails."""
SECONDS = 60.0
"""Longest time for an answer, unless $GAPWISE_ORACLE_SECONDS says otherwise."""
SHOWN = 200
"""Most characters of a bad answer in an error message."""
LONGEST = 1 << 28
"""Most bytes of an answer: an endless one would fill the memory."""
COMPLAINTS = 1 << 20
"""Bytes of standard error that are kept."""
log = logging.getLogger("gapwise")


class ServerError(ValueError):
    """A program that cannot be started, does not answer, or gives an invalid answer; names its command."""


class _Gone(Exception):
    """The program has died or did not answer in time; the message says which."""


class Server:
    """A program to be asked; `hello` is the first question to each one that is started, and must get the same answer.

    Threads take turns. A process that was forked starts a program of its own.
    """

    def __init__(self, command: str, hello: Facts) -> None:
        try:
            self.words = shlex.split(command)
        except ValueError as error:
            raise ServerError(f"command {command!r}: {error}") from error
        if not self.words:
            raise ServerError("command: must be given, such as './my_oracle --data x'")
        permit(command, "start this program")
        self.command, self._hello = command, dict(hello)
        self._turn = threading.Lock()
        self._program: _Program | None = None
        self.starts = self._lost = 0
        self.greeting: Record = {}
        self.greeting = self.ask(None)

    def ask(self, question: Facts | None) -> Record:
        """The answer to a question, or to `hello`; ServerError if `TRIES` programs give no answer."""
        seconds = _seconds()
        with self._turn:
            for trial in range(TRIES):
                try:
                    greeting = self._start(seconds)
                    return greeting if question is None else self._exchange(question, seconds)
                except _Gone as gone:
                    self._end()
                    why = gone
                self._lost += 1
                if trial + 1 < TRIES:
                    if self._lost in (1, 10, 100) or self._lost % 1000 == 0:
                        log.warning("%s: %s; starting it again, loss number %d", self.command, why, self._lost)
                    time.sleep(0.05 * trial)
        raise ServerError(f"{self.command}: {why}; started {TRIES} times for this question")

    def _start(self, seconds: float) -> Record:
        """Start the program unless it runs; returns its greeting."""
        if self._program is not None and self._program.mine:
            return self.greeting
        try:
            self._program = _Program(self.words)
        except OSError as error:
            raise ServerError(f"{self.command}: cannot be started: {error.strerror}: {error.filename}") from error
        self.starts += 1
        greeting = self._exchange(self._hello, seconds)
        if self.greeting and greeting != self.greeting:  # a first program may have died before it gave one
            raise ServerError(
                f"{self.command}: was started again and says {_short(greeting)}, but said {_short(self.greeting)}; expected "
                "the same data"
            )
        return greeting

    def _exchange(self, question: Facts, seconds: float) -> Record:
        assert self._program is not None
        program = self._program
        if stale := program.unread():
            self._refuse(question, f"it had already written {_short(stale.decode(errors='replace'))}")
        line = program.exchange(json.dumps(question, separators=(",", ":")).encode() + b"\n", seconds)
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self._refuse(question, f"it answered {_short(line.decode(errors='replace'))}")
        if program.early:
            self._refuse(
                question, f"it answered before it had read the question: {_short(line.decode(errors='replace'))}"
            )
        if program.rest:
            self._refuse(question, f"it answered more than a line: {_short(program.rest.decode(errors='replace'))}")
        if answer.get("block", question.get("block")) != question.get("block"):
            self._refuse(question, f"it answered about block {_short(answer['block'])}")
        if "error" in answer:
            raise ServerError(f"{self.command}: {_short(answer['error'])}")
        return answer

    def _refuse(self, question: Facts, fault: str) -> NoReturn:
        """End the program, whose answers can no longer be told apart, and say what it did."""
        self._end()
        raise ServerError(
            f"{self.command}: to {_short(question)} {fault}; expected one line of JSON such as "
            '{"answer": ...}, and nothing else on its standard output'
        )

    def _end(self) -> None:
        if self._program is not None:
            self._program.end()
        self._program = None


class _Program:
    """A running program with its pipes."""

    def __init__(self, words: list[str]) -> None:
        # a pipe that nobody reads would fill up
        self.complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.complaints,
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self.complaints.close()
            raise
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.into, self.out = self.process.stdin, self.process.stdout
        for pipe in (self.into, self.out):
            os.set_blocking(pipe.fileno(), False)
        self.pid, self.rest = os.getpid(), bytearray()
        self.early = False  # whether the last answer came while half its question was still to be written
        # at the end of Python too; a program that reads ends by itself when this process dies
        self._finalizer = weakref.finalize(self, _ended, self.process, self.complaints, self.pid)

    @property
    def mine(self) -> bool:
        """Whether this process started it: after a fork the pipes are somebody else's."""
        return self.pid == os.getpid()

    def end(self) -> None:
        """Kill it."""
        self._finalizer()

    def unread(self) -> bytes:
        """What it wrote without being asked; `_Gone` if it has ended."""
        return bytes(self.rest) or self._read()

    def exchange(self, line: bytes, seconds: float) -> bytes:
        """Send a line and receive one, without its end; `_Gone` if the program dies or `seconds` are over."""
        end, left = time.monotonic() + seconds, memoryview(line)
        with selectors.DefaultSelector() as selector:
            selector.register(self.out, selectors.EVENT_READ)
            selector.register(self.into, selectors.EVENT_WRITE)
            line_end = -1
            while line_end < 0:
                ready = selector.select(end - time.monotonic())
                if time.monotonic() >= end:
                    raise _Gone(
                        f"no answer in {seconds:g} s{self._complaint()} (GAPWISE_ORACLE_SECONDS=… in the environment "
                        "allows more)"
                    )
                for key, _ in ready:
                    if key.fileobj is self.into:
                        left = left[self._write(left) :]
                        if not left:
                            selector.unregister(self.into)
                        continue
                    known = len(self.rest)
                    self.rest += self._read()
                    line_end = self.rest.find(b"\n", known)
                    if line_end < 0 and len(self.rest) > LONGEST:
                        raise _Gone(f"wrote {len(self.rest):,} bytes without the end of a line{self._complaint()}")
        self.early = len(left) > 0
        answer, self.rest = bytes(self.rest[:line_end]), self.rest[line_end + 1 :]
        self._forget_complaints()
        return answer

    def _forget_complaints(self) -> None:
        """Keep the file of its standard error small; both processes share its position."""
        if os.fstat(self.complaints.fileno()).st_size > COMPLAINTS:
            self.complaints.seek(0)
            self.complaints.truncate()

    def _write(self, line: memoryview) -> int:
        try:
            return self.into.write(line) or 0
        except OSError:  # it reads no more: what it does with its output will tell
            return len(line)

    def _read(self) -> bytes:
        chunk = self.out.read(1 << 16)
        if chunk == b"":
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1.0)
            code = self.process.poll()
            how = (
                "closed its output"
                if code is None
                else f"was killed by signal {-code}"
                if code < 0
                else f"ended with {code}"
            )
            raise _Gone(f"{how} without an answer{self._complaint()}")
        return chunk or b""

    def _complaint(self) -> str:
        """The last line of what it wrote to its standard error."""
        self.complaints.seek(0, os.SEEK_END)
        self.complaints.seek(max(0, self.complaints.tell() - 4096))
        lines = self.complaints.read().decode(errors="replace").strip().splitlines()
        return f" (its last words: {_short(lines[-1])})" if lines else ""


def _ended(process: subprocess.Popen[bytes], complaints: IO[bytes], pid: int) -> None:
    """Kill a program and close everything, unless another process started it."""
    if pid == os.getpid():
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, complaints):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


def _short(message: object) -> str:
    """Something a program said, as part of one line that a terminal can show."""
    text = message if isinstance(message, str) else json.dumps(message)
    text = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: SHOWN + 1]).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def _seconds() -> float:
    """Longest time for an answer."""
    given = os.environ.get("GAPWISE_ORACLE_SECONDS", "")
    try:
        seconds = float(given or SECONDS)
    except ValueError:
        seconds = 0.0
    if not seconds > 0.0:
        raise ServerError(f"GAPWISE_ORACLE_SECONDS: expected a number of seconds > 0, got {given!r}")
    return seconds
