"""Exchange of recorded calls with other tools: BackendBench, PyTorch's execution traces, standalone scripts."""
