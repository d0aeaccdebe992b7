"""Networks of vector observations on the CPU, with the backward pass written out."""
