"""Records of runs: immutable, verified when they are read."""
