"""Comparisons beyond numbers."""
