"""Source to something that runs: a program for this CPU, or a cubin; with the identity of what went in."""
