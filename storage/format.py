"""The version of everything on disk and of every key: results of another version are refused, never guessed at."""

from __future__ import annotations

FORMAT_VERSION = 3
"""Raise it when what a stage writes changes its meaning or its form."""
