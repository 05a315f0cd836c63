"""`enable tune`: kernels that are right are made faster, by a language model or over the space that they declare."""
