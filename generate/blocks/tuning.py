"""Settings of a launch that `enable tune --no-llm` chose: a table in the kernel file, by target and number of elements.

A kernel file declares what may be chosen, SPACE = (("BLOCK", (256, 1024)), ("WARPS", (4, 8))), and what was, in rows
of a target ("" is any), the least number of elements for which the row holds, and a value for each name of SPACE:
TUNED = (("", 0, 1024, 4), ("sm_90", 65536, 256, 8)). The first row is of any target and of any number.
"""

import math

TUNING_TARGET = ""  # such as sm_90: whoever loads the file on a device says so (verify/child/loading.py)

__all__ = ["tuned"]


def tuned(table, *shapes):
    """The values of the last row that holds for tensors of these shapes, by the elements of the largest."""
    n = max([math.prod(shape) for shape in shapes])
    values = table[0][2:]
    for row in table:
        if row[1] <= n and row[0] in ("", TUNING_TARGET):
            values = row[2:]
    return values


TRITON = ""  # such as 3.9: likewise told, where kernels are compiled; nothing where they are interpreted
