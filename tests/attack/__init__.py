"""What must not pass: each file attacks the tool in one way."""
