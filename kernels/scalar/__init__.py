"""The scalar operator: one query row (kernels/CONTRACT.md, `scalar`)."""

from .operator import scalar

__all__ = ["scalar"]
