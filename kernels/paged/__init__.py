"""Shared by the operators: axes, inputs in permuted pages, and the steps that change row lengths."""
