"""The grouped operator: 2 to 8 query rows that share one KV head (kernels/CONTRACT.md, `grouped`)."""

from .operator import grouped

__all__ = ["grouped"]
