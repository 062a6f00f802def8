"""NVIDIA's compute-sanitizer on a GPU: how it runs, what its output says."""
