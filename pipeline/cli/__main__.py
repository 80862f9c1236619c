"""``python -m pipeline.cli``: the same as the console script ``gapwise``."""

from pipeline.__main__ import script

if __name__ == "__main__":
    script()
