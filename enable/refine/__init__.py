"""Dialogs with an LLM, what is asked of a candidate, and how it comes into the library."""
