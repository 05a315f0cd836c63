"""Judge kernels: the kernel-file contract, platforms, lint, child processes, comparison and verdicts."""
