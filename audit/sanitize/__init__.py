"""Sanitizers: compute-sanitizer on a GPU and host sanitizers on a CPU, with their canaries and verdicts."""
