"""``python -m pipeline.cli``: the same as the console script ``gapwise``."""

from pipeline.__main__ import leave, main

if __name__ == "__main__":
    leave(main())
