"""Reports: evidence becomes one HTML file, that of a run with what its project keeps beside it."""

from audit.report.bench_page import render_bench
from audit.report.run_page import pages, render
from audit.report.sanitize_page import render_sanitize

__all__ = ["pages", "render", "render_bench", "render_sanitize"]
