"""Recorded calls in other tools' forms: BackendBench, PyTorch's execution traces, standalone scripts."""
