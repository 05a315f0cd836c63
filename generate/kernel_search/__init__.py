"""A search for speed: candidates as a tree, what they were measured at, and what was learned of it."""
