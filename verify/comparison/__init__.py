"""Decide if an answer is right: compare structure, values and the laws of draws, and describe errors in words."""
