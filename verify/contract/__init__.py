"""What a kernel file says, read without executing it, and which overloads it serves by derivation."""
