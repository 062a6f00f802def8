"""Compiles a source to a program for this CPU or to a cubin, and records the identity of the build."""
