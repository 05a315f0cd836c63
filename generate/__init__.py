"""Kernels for operators: the library, and the state machine that lets an LLM write or mend what fails."""
