"""Find subgraphs of traces that are worth kernels of their own (`enable fuse`)."""
