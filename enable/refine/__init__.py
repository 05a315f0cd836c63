"""Refinement: hold dialogs with an LLM, judge its candidate kernels, and put accepted ones into the library."""
