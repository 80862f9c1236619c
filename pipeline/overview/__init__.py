"""Runs seen from outside: found, told apart, compared and cleaned up after; what the commands of `pipeline.cli` rest on.

A list of 200 runs has to appear at once, so these modules import neither numpy nor zarr, Hydra or MLflow.
"""
