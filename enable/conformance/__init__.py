"""Other projects' tests and PyTorch's own operator checks, run natively and through the registration, and compared."""
