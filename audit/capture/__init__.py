"""Actual inputs of a live model: recording them, storing them, saying what was covered."""
