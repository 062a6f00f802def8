"""Two kernels compared without a project."""
