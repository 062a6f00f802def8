"""The sanitizers of this CPU: what they are, how they run, what their output says."""
