"""Mutation score of the judge: how many semantic mutants of the library's kernels it rejects.

`python -m benchmarks.kernel_mutants --help` (__main__.py) draws mutants (drawing.py) from the changes that the linked
text of a kernel file offers (program.py, changes.py), judges each in a worker (judging.py), compares survivors with
the original by PTX and launches (equivalence.py), and prints a table (report.py).
"""
