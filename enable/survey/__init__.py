"""Many models at once: what a table of them names is recorded, replayed, judged and trained, a row each."""
