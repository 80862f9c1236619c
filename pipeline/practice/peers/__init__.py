"""The packages that take part: a file for each, found in `CONTESTANTS` of `table.py`. They are imported when they run."""
