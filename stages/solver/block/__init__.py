"""One block at a time: the step, its views of a block, the moves, and the samplers that say which block is next."""
