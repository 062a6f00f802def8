"""The audited kernels. `CONTRACT.md` in this folder states what they promise."""
