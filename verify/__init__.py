"""Judging kernels: the kernel-file contract, platforms, lint, children, comparison, verdicts."""
