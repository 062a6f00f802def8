"""The sanitizers on this CPU: the tools, their runs, and their output."""
