"""kernel-audit: a numerical correctness audit for GPU kernels."""

__version__ = "0.1.0"
