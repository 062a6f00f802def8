"""How the sources of this project are compiled for a GPU."""

from audit import Source

FLAGS = ("-fmad=false",)
"""The contract writes every fused multiply-add itself, so a compiler must not make others."""


def cuda_source(path: str) -> Source:
    """The source at a path relative to the project's folder."""
    return Source(path, flags=FLAGS)
