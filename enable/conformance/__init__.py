"""Run other projects' tests and PyTorch's operator checks natively and through the registration, and compare."""
