"""Evidence: the immutable record of one run."""
