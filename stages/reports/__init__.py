"""Figures, tables over many runs, and report.html."""

FORMATS = ("png", "pdf", "svg")
"""Formats of figures. png for screens; pdf and svg for papers"""
