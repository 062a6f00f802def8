"""Paired timing on a GPU: a variant beside its parent, beside itself, and beside peers, in the same run."""
