"""Records and stores a live model's actual inputs, and counts what was captured."""
