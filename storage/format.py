"""The version of everything on disk and of every key; results of another version are refused."""

from __future__ import annotations

FORMAT_VERSION = 3
"""Raise it when the meaning or the form of what a stage writes changes."""
