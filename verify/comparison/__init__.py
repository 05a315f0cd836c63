"""Whether an answer is right: structure, values, laws of draws, and in words how it is wrong."""
