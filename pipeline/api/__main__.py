"""`python -m gapwise`: the same as the console script."""

from gapwise.pipeline.entry import script

if __name__ == "__main__":
    script()
