"""Measure how much of a trace, of OpInfo or of one operator a library covers, and find the missing overloads."""
