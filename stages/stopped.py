"""The exception of a stop. It is no error, so `except Exception`, ours or a library's, lets it pass."""

from __future__ import annotations


class Stopped(BaseException):
    """Work was given up because a stop was requested; what was committed is kept."""
