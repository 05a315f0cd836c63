"""Discover the dialect of a compiler or chip: run a catalogue of tiny kernels, and write the platform file."""
