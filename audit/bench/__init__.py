"""Paired timing on a GPU: a variant against its parent, against itself and against peers, in one run."""
