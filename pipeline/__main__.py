"""`python -m pipeline` in a checkout; everything is in `gapwise.pipeline.entry`."""

from gapwise.pipeline.entry import leave, main

if __name__ == "__main__":
    leave(main())
