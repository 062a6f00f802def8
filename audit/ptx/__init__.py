"""PTX, NVIDIA's portable instructions, translated to C++ for the CPU."""
