"""One block at a time: which one is next (`sampling`), and its step (`step`), by features or by margins."""
