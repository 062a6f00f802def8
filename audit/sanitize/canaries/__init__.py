"""Planted faults that a sanitizer must find to prove that it works, each with its clean twin."""
