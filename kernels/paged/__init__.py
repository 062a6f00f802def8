"""What the operators share: axes, inputs in permuted pages, and the steps that change row lengths."""
