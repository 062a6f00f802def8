"""Sanitizers: compute-sanitizer on a GPU, host sanitizers anywhere, their canaries and verdicts."""
