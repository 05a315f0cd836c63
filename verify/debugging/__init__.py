"""Rerun a case that crashed or hung, to find out the position of the kernel at that time."""
