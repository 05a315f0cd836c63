"""Cases: recorded calls, OpInfo samples and variants of them, ready to be replayed against a kernel."""
