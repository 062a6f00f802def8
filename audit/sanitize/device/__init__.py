"""NVIDIA's compute-sanitizer on a GPU: its runs and its output."""
