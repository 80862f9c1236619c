"""Which lambda to take, and where a path may end because no smaller one is going to be taken."""
