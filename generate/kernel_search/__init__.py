"""Search for faster kernels: the tree of candidates, their measured times, and the lessons learned."""
