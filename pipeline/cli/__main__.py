"""``python -m pipeline.cli``: the same as the console script ``gapwise``."""

from gapwise.pipeline.entry import script

if __name__ == "__main__":
    script()
