"""The stages of a run, one a file, and in folders what they are made of."""

from __future__ import annotations


class Stopped(BaseException):
    """Work was given up because a stop was requested; what was committed is kept.

    It is no error, so `except Exception`, ours or a library's, lets it pass.
    """
