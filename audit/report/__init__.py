"""Reports: evidence, and nothing else, becomes one HTML file."""

from audit.report.bench_page import render_bench
from audit.report.page import render
from audit.report.sanitize_page import render_sanitize

__all__ = ["render", "render_bench", "render_sanitize"]
