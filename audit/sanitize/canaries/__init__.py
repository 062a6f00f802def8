"""Planted faults that prove a sanitizer alive, each with its clean twin."""
