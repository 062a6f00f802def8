"""References for the operators of kernels/CONTRACT.md, written from its text: FP64, contract and exact.

They share no code with the kernels, so that a fault in code that two variants share does not hide.
"""
