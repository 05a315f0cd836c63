"""Find subgraphs in a dataflow that are worth fusing, and compose kernels for them."""
