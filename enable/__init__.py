"""Command line, coverage, registration and reports of the toolkit."""
