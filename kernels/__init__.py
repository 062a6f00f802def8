"""The audited kernels and what they promise; `CONTRACT.md` beside this file is the authority."""
