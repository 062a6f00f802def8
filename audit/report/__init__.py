"""Reports: evidence, and nothing else, becomes one HTML file."""

from audit.report.page import render

__all__ = ["render"]
