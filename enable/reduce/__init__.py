"""Reduce a failing kernel file and its inputs to a minimal program that still fails in the same way."""
