"""Subgraphs of a dataflow that are worth a kernel of their own."""
