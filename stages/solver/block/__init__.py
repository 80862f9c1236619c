"""One block at a time: which one is next (`sampling`), and its step (`step`) by one of the views of a block (`views`)."""
