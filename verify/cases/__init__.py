"""Cases: recorded calls, OpInfo's samples and what is made of them, ready to be replayed against a kernel."""
